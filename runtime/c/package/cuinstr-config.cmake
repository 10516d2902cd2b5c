# find_package(cuinstr) gives the targets cuinstr::cuinstr (shared) and cuinstr::static.
get_filename_component(_cuinstr_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET cuinstr::cuinstr)
  find_package(Threads REQUIRED)
  add_library(cuinstr::cuinstr SHARED IMPORTED)
  set_target_properties(cuinstr::cuinstr PROPERTIES
    IMPORTED_LOCATION "${_cuinstr_prefix}/lib/libcuinstr.so.1"
    IMPORTED_SONAME libcuinstr.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${_cuinstr_prefix}/include")
  add_library(cuinstr::static STATIC IMPORTED)
  set_target_properties(cuinstr::static PROPERTIES
    IMPORTED_LOCATION "${_cuinstr_prefix}/lib/libcuinstr.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_cuinstr_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
