# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DOBJDUMP=... -DOBJCOPY=... -DLEVEL=x86_64_v3 -DFOLDER=... -DOBJECTS=a|b|... -P PrivateObjects.cmake
# Copies object files of a CPU level to FOLDER, as <name>.x86_64_v3.o. The linker keeps one of all inline functions of a
# name, which must not be this level's on another CPU. So code and constants get names with the level behind them, but
# for the entry points, LevelCall<...>::run. Variables keep theirs: those of Kokkos and the pools of workspaces exist
# once. Initialisers go where the loader does not find them; cpu_level.cpp runs those of the level that it picks.
cmake_minimum_required(VERSION 3.23...3.25)

set(entry_points "^_ZN8KokkosNN4Impl9LevelCallI")
set(variables "^\\.(data|bss|tdata|tbss)(\\.|$)")
set(constants "^\\.data\\.rel\\.ro")
set(type_names "^_ZT[IS]") # alike at all levels; exceptions are caught by them

string(REPLACE "|" ";" objects "${OBJECTS}")
file(MAKE_DIRECTORY ${FOLDER})
foreach(object IN LISTS objects)
  execute_process(COMMAND ${OBJDUMP} -t ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" symbols "${symbols}")
  set(renamed "")
  foreach(symbol IN LISTS symbols)
    # Value, seven flags, section, size, name. Flags d and f are sections and files.
    if(NOT symbol MATCHES "^[0-9a-f]+ .....([^df])[^f] ([^ \t]+)\t[0-9a-f]+ +(\\.hidden )?([^ ]+)$")
      continue()
    endif()
    set(section ${CMAKE_MATCH_2})
    set(name ${CMAKE_MATCH_4})
    set(is_variable FALSE)
    if(section MATCHES "${variables}" AND NOT section MATCHES "${constants}")
      set(is_variable TRUE)
    endif()
    if(NOT section MATCHES "^\\*" AND NOT is_variable AND NOT name MATCHES "${entry_points}|${type_names}")
      string(APPEND renamed "${name} ${name}.${LEVEL}\n")
    endif()
  endforeach()
  get_filename_component(file ${object} NAME_WLE)
  file(WRITE ${FOLDER}/${file}.names "${renamed}")
  execute_process(
    COMMAND ${OBJCOPY} --redefine-syms=${FOLDER}/${file}.names --rename-section .init_array=kokkosnn_init_${LEVEL}
            ${object} ${FOLDER}/${file}.${LEVEL}.o COMMAND_ERROR_IS_FATAL ANY)
endforeach()
