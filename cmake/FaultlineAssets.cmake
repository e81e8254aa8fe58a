# faultline_assets(LIBRARY name NAMESPACE a::b HEADER path FUNCTIONS function file...): each file's
# bytes become a `std::string_view function()` of the library. The assembler's .incbin takes them
# in as they are: no escaping, no limit on the length of a literal, nothing to read at run time.
function(faultline_assets)
  cmake_parse_arguments(A "" "LIBRARY;NAMESPACE;HEADER" "FUNCTIONS" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${A_LIBRARY}_assets.cc)
  set(text "// Made by cmake/FaultlineAssets.cmake.\n#include \"${A_HEADER}\"\n\n")
  set(files)
  list(LENGTH A_FUNCTIONS count)
  math(EXPR last "${count} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET A_FUNCTIONS ${i} function)
    list(GET A_FUNCTIONS ${j} file)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND files ${file})
    set(symbol ${A_LIBRARY}_asset_${function})
    string(APPEND text
      "__asm__(\".section .rodata\\n\"\n"
      "        \".global ${symbol}_begin\\n.hidden ${symbol}_begin\\n${symbol}_begin:\\n\"\n"
      "        \".incbin \\\"${file}\\\"\\n\"\n"
      "        \".global ${symbol}_end\\n.hidden ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n\"\n"
      "        \".previous\\n\");\n"
      "extern \"C\" {\n"
      "extern const char ${symbol}_begin[] __attribute__((visibility(\"hidden\")));\n"
      "extern const char ${symbol}_end[] __attribute__((visibility(\"hidden\")));\n"
      "}\n"
      "namespace ${A_NAMESPACE} {\n"
      "std::string_view ${function}() {\n"
      "  return {${symbol}_begin, static_cast<std::size_t>(${symbol}_end - ${symbol}_begin)};\n"
      "}\n"
      "}  // namespace ${A_NAMESPACE}\n\n")
  endforeach()
  file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
  # A file of its own also where sources are joined: else nobody knows what it depends on.
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}"
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${A_LIBRARY} PRIVATE ${source})
endfunction()
