# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DOBJDUMP=... -DAWK=... -DLIBRARY=... -P check_levels.cmake
# Any CPU of the architecture may run the library: instructions of later CPUs are in functions of a level alone, whose
# names say so or which are its entry points, and nothing of a level runs when a program is loaded.
cmake_minimum_required(VERSION 3.23...3.25)
set(count [=[
/^[0-9a-f]+ <.*>:$/ {
  name = $2
  is_private = name ~ /[.](x86_64_v[34]|sve_(256|512))>:$/ || name ~ /KokkosNN4Impl9LevelCallI/
}
/:\t(v[a-z0-9]+|k(mov|or|and|xor|not|unpck|test)[a-z]*|andn|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext)( |$)/ ||
/:\t(rorx|sarx|shlx|shrx|lzcnt|movbe)( |$)/ || /:\t.*[ \t{]z[0-9]+[.,]/ {
  if (is_private) ++private
  else if (!(name in others)) { others[name]; print name }
}
END { print private + 0 }
]=])
execute_process(
  COMMAND ${OBJDUMP} -d --no-show-raw-insn ${LIBRARY}
  COMMAND ${AWK} "${count}"
  OUTPUT_VARIABLE found
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT found MATCHES "^[1-9][0-9]*$")
  message(FATAL_ERROR "Functions outside of the levels with instructions of later CPUs, and how many the levels have:\n"
                      "${found}")
endif()

execute_process(COMMAND ${OBJDUMP} -h ${LIBRARY} OUTPUT_VARIABLE sections COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n:]+: +file format|[.](init_array|ctors)" sections "${sections}")
set(member "")
foreach(section IN LISTS sections)
  if(section MATCHES "file format")
    set(member "${section}")
  elseif(member MATCHES "[.]x86_64_v[34][.]o:")
    message(FATAL_ERROR "${member}: code of a level would run when a program is loaded")
  endif()
endforeach()
message(STATUS "${found} instructions of later CPUs, all of them in functions of a level")
