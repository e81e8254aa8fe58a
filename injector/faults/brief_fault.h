#pragma once

#include <string>

#include "injector/fault.h"

namespace faultline::injector {

/// A fault that can also be done for moments, in a train (flap.h): it can be taken back as fast as
/// it is done, and a strike too short for evidence() can be seen to have hit.
class BriefFault : public Fault {
 public:
  /// After prepare(): opens at once what a glimpse needs, since a strike may be too short for that.
  virtual Status readyForBriefStrikes() { return okStatus(); }

  /// Takes it back, as short as apply(): only the kernel calls. Whether the former state is there
  /// again is for revert(), which is still to be called at the end.
  virtual Status heal() = 0;

  /// Whether this strike was seen to hit; weaker than evidence, which also watches for a while that
  /// nothing else happens. step() after heal() may still find out.
  virtual bool glimpsed() const = 0;

  /// What was seen of this strike, for people, with numbers.
  virtual std::string glimpse() const = 0;
};

}  // namespace faultline::injector
