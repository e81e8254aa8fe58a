#include "harness/workload/collective/section/reader.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/units.h"
#include "harness/scenario/record_reader.h"
#include "harness/workload/collective/section/table.h"

namespace faultline::scenario {
namespace {

class SweepReader {
 public:
  SweepReader(const Node& root, Findings& findings)
      : root_(root), findings_(findings), records_(findings) {}

  Sweep read(const Parameters& values) {
    const std::string path = "workload.collective";
    const Node* const workload = root_.find("workload");
    const Node* const node = workload == nullptr ? nullptr : workload->find("collective");
    const auto words = [&](std::string_view key, auto of) {
      using Value = typename decltype(of(std::string()))::value_type;
      std::vector<Value> found;
      for (const ParameterValue& value : records_.readList(node, collectiveTable(), key, path)) {
        found.push_back(*of(std::get<std::string>(value)));
      }
      return found;
    };
    Sweep sweep;
    sweep.operations = words("operations", schedule::collectiveFromName);
    sweep.dtypes = words("dtypes", reduction::dataTypeFromName);
    sweep.ops = words("ops", reduction::reduceOpFromName);
    const auto& place = values.get<std::string>("workload.collective.place");
    sweep.place = place == "both" ? Place::kBoth : place == "in" ? Place::kIn : Place::kOut;
    sweep.settleCalls = integer(values, path + ".settle_calls");
    sweep.sizes.clear();
    for (const ParameterValue& value : records_.readList(node, collectiveTable(), "sizes", path)) {
      sweep.sizes.push_back(std::get<Size>(value).bytes);
    }
    readRange(node, values, path, sweep);
    return sweep;
  }

 private:
  /// `from` and `to` in the place of `sizes`.
  void readRange(const Node* node, const Parameters& values, const std::string& path,
                 Sweep& sweep) {
    if (node == nullptr) return;
    const Node* const from = node->find("from");
    const Node* const to = node->find("to");
    const Node* const factor = node->find("factor");
    const Node* const any = from != nullptr ? from : to != nullptr ? to : factor;
    if (any == nullptr || !findings_.usable({path})) return;
    if (node->find("sizes") != nullptr) {
      findings_.addAt(path, any->where,
                      "sizes: either a list of them, or a range: from, to, factor");
    } else if (from == nullptr || to == nullptr) {
      findings_.addAt(path, any->where, "a range of sizes needs both 'from' and 'to'");
    } else {
      const Bytes first = values.get<Size>("workload.collective.from").bytes;
      const Bytes last = values.get<Size>("workload.collective.to").bytes;
      if (last < first) {
        findings_.addAt(
            path, to->where,
            fmt::format("to: {} is less than from: {}", formatSize(last), formatSize(first)));
        return;
      }
      sweep.sizes =
          sizesBetween(first, last, values.get<std::int64_t>("workload.collective.factor"));
    }
  }

  const Node& root_;
  Findings& findings_;
  RecordReader records_;
};

}  // namespace

Sweep readSweep(const Node& root, const Parameters& values, Findings& findings) {
  return SweepReader(root, findings).read(values);
}

}  // namespace faultline::scenario
