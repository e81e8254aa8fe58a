#include "harness/scenario/cluster_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/record_reader.h"
#include "harness/site/kinds/kinds.h"

namespace faultline::scenario {
namespace {

constexpr std::string_view kCluster = "cluster";
constexpr std::string_view kRails = "rails";
constexpr std::string_view kRailRate = "rail_rate";

const Record& clusterRecord() {
  return *std::ranges::find_if(scenarioTable().fields, [](const Field& field) {
            return field.spec.name == kCluster;
          })->record;
}

const ParameterSpec& specOfKey(std::string_view key) {
  return std::ranges::find_if(clusterRecord().fields,
                              [&](const Field& field) { return field.spec.name == key; })
      ->spec;
}

class ClusterReader {
 public:
  ClusterReader(const Node& root, const Parameters& values, Findings& findings)
      : section_(root.find(kCluster)), values_(values), findings_(findings), records_(findings) {}

  Cluster read() {
    Cluster cluster;
    cluster.kind = site::findKind(values_.get<std::string>("cluster.kind"));
    cluster.nodes = integer(values_, "cluster.nodes");
    cluster.ranksPerNode = integer(values_, "cluster.ranks_per_node");
    cluster.railRate = values_.get<Rate>("cluster.rail_rate").bitsPerSecond;
    if (values_.has("cluster.congestion_control")) {
      cluster.congestionControl = values_.get<std::string>("cluster.congestion_control");
    }
    const bool known = cluster.kind != nullptr;
    const bool finds = known && cluster.kind->findsRails;
    if (finds && find(kRailRate) == nullptr) cluster.railRate = 0;
    readRails(finds, cluster);
    if (!known) return cluster;
    for (const site::Setting& setting : cluster.kind->settings) readSetting(setting, cluster);
    checkOwn(cluster);
    return cluster;
  }

 private:
  const Node* find(std::string_view key) const {
    return section_ == nullptr ? nullptr : section_->find(key);
  }
  static std::string pathOf(std::string_view key) { return fmt::format("{}.{}", kCluster, key); }

  void readRails(bool finds, Cluster& cluster) {
    const Node* const node = find(kRails);
    const ParameterSpec& spec = specOfKey(kRails);
    const bool automatic =
        node == nullptr || (node->kind == Node::Kind::kScalar && node->text == kAutomatic);
    if (finds && automatic) {
      cluster.railChoice.automatic = true;
      cluster.rails = 1;
      findings_.distrust(pathOf(kRails));
    } else if (finds && node->kind == Node::Kind::kList) {
      cluster.railChoice.names = readNames(*node);
      cluster.rails = std::max(1, static_cast<int>(cluster.railChoice.names.size()));
    } else if (finds && node->kind == Node::Kind::kMap) {
      for (const Entry& entry : node->entries) {
        cluster.railChoice.byNode[entry.key] = readNames(entry.value);
        cluster.rails = std::max(1, static_cast<int>(cluster.railChoice.byNode[entry.key].size()));
      }
    } else if (node == nullptr) {
      cluster.rails =
          static_cast<int>(std::get<std::int64_t>(*parseParameter(spec, spec.defaultText)));
    } else {
      cluster.rails = static_cast<int>(
          std::get<std::int64_t>(records_.readScalar(*node, spec, pathOf(kRails))));
    }
  }

  std::vector<std::string> readNames(const Node& list) {
    std::vector<std::string> names;
    const auto wrong = [&](const Node& node) {
      findings_.addAt(
          pathOf(kRails), node.where,
          fmt::format("rails: a list of names of interfaces is expected, not {}", describe(node)));
    };
    if (list.kind != Node::Kind::kList || list.items.empty()) wrong(list);
    for (const Node& item : list.items) {
      if (item.kind != Node::Kind::kScalar || item.text.empty()) {
        wrong(item);
      } else if (std::ranges::count(names, item.text) > 0) {
        findings_.addAt(pathOf(kRails), item.where,
                        fmt::format("rails: {} is listed twice", describe(item)));
      }
      names.push_back(item.text);
    }
    return names;
  }

  void readSetting(const site::Setting& setting, Cluster& cluster) {
    const std::string key(setting.spec.name);
    if (setting.list) {
      // One may be for each node.
      const auto most = std::max(kMostElements, static_cast<std::size_t>(cluster.kind->most.nodes));
      for (const ParameterValue& value :
           records_.readList(section_, clusterRecord(), key, std::string(kCluster), most)) {
        cluster.settings[key].push_back(formatParameter(value));
      }
    } else if (values_.has(pathOf(key))) {
      cluster.settings[key] = {formatParameter(values_.value(pathOf(key)))};
    }
  }

  void checkOwn(Cluster& cluster) {
    site::ClusterSpec spec = specOf(cluster);
    if (cluster.kind->complete != nullptr && findings_.usable({kCluster})) {
      const site::Refusal refusal = cluster.kind->complete(spec);
      if (!refusal.reason.empty()) return refuse(refusal);
      cluster.settings = spec.settings;
    }
    if (cluster.kind->check != nullptr && findings_.usable({kCluster})) {
      for (const site::Refusal& refusal : cluster.kind->check(spec)) refuse(refusal);
    }
    if (cluster.kind->nodes != nullptr) cluster.nodes = std::max(1, cluster.kind->nodes(spec));
  }

  void refuse(const site::Refusal& refusal) {
    const Node* const node = find(refusal.key);
    const Location where = node != nullptr       ? node->where
                           : section_ != nullptr ? section_->where
                                                 : Location{};
    findings_.addAt(pathOf(refusal.key), where, refusal.reason);
  }

  const Node* section_;
  const Parameters& values_;
  Findings& findings_;
  RecordReader records_;
};

}  // namespace

Cluster readCluster(const Node& root, const Parameters& values, Findings& findings) {
  return ClusterReader(root, values, findings).read();
}

site::ClusterSpec specOf(const Cluster& cluster) {
  site::ClusterSpec spec;
  spec.nodes = cluster.nodes;
  spec.ranksPerNode = cluster.ranksPerNode;
  spec.rails = cluster.rails;
  spec.railRate = cluster.railRate;
  spec.congestionControl = cluster.congestionControl;
  spec.railChoice = cluster.railChoice;
  spec.settings = cluster.settings;
  return spec;
}

bool isRailRate(BitsPerSecond rate) {
  const ParameterSpec& spec = specOfKey(kRailRate);
  const auto value = static_cast<double>(rate);
  return value >= spec.minimum && value <= spec.maximum;
}

int mostRails(const Cluster& cluster) {
  return cluster.railChoice.automatic ? cluster.kind->most.rails : cluster.rails;
}

std::string railsInWords(const Cluster& cluster) {
  if (cluster.railChoice.automatic) return "the rails that are found";
  const bool rated = cluster.kind->shapesRails || cluster.kind->findsRails;
  return fmt::format(
      "{} rails{}", cluster.rails,
      rated && cluster.railRate != 0 ? fmt::format(" of {}", formatRate(cluster.railRate)) : "");
}

}  // namespace faultline::scenario
