#pragma once

/// The renderers, in the order in which their files are written; result.json first, because the
/// others can be made from it again. A line each: RENDERER(Name) stands for `makeNameRenderer`.
#ifdef FAULTLINE_JUNIT  // only where the build had tinyxml2
#define FAULTLINE_JUNIT_RENDERER(RENDERER) RENDERER(Junit)
#else
#define FAULTLINE_JUNIT_RENDERER(RENDERER)
#endif

#define FAULTLINE_RENDERERS(RENDERER) \
  RENDERER(Json)                      \
  RENDERER(Csv)                       \
  RENDERER(Iterations)                \
  FAULTLINE_JUNIT_RENDERER(RENDERER)  \
  RENDERER(Trace)                     \
  RENDERER(Prometheus)                \
  RENDERER(Collectives)               \
  RENDERER(Html)                      \
  RENDERER(Markdown)
