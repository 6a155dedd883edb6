# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.23...3.25)
# The Debian package of BUILD, unpacked into a root in FOLDER, whose library the consumer SOURCE is configured against.
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CPACK} -G DEB -C ${CONFIG} -B ${FOLDER} --config ${BUILD}/CPackConfig.cmake
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB package ${FOLDER}/kokkosnn_*.deb)
execute_process(COMMAND ${DPKG_DEB} --field ${package} Package Version Conflicts COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${DPKG_DEB} -x ${package} ${FOLDER}/root COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "|" ";" arguments "${ARGUMENTS}")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER}/build -DKokkosNN_ROOT=${FOLDER}/root/usr ${arguments}
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
