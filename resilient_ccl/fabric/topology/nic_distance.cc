#include "resilient_ccl/fabric/topology/nic_distance.h"

#ifdef FAULTLINE_HWLOC
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#endif

namespace faultline::fabric {

using Distances = std::vector<std::vector<int>>;

#ifdef FAULTLINE_HWLOC
namespace {

// More than objects lie between any two NICs, so that what joins them decides first.
constexpr int kFurther = 1000;

using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>,
                                 decltype([](hwloc_topology_t t) { hwloc_topology_destroy(t); })>;

Result<Topology> load(const std::string* xml) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return Status::fromErrno(errno, "make an hwloc topology");
  Topology topology(made);
  if (xml != nullptr &&
      hwloc_topology_set_xmlbuffer(made, xml->c_str(), static_cast<int>(xml->size()) + 1) != 0) {
    return Status::fromErrno(errno, "read hwloc's XML");
  }
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_load(made) != 0) {
    return Status::fromErrno(errno, "load the hwloc topology");
  }
  return topology;
}

/// The object and all above it, up to the machine.
std::vector<hwloc_obj_t> lineage(hwloc_obj_t object) {
  std::vector<hwloc_obj_t> line;
  for (; object != nullptr; object = object->parent) line.push_back(object);
  return line;
}

int distance(const std::vector<hwloc_obj_t>& a, const std::vector<hwloc_obj_t>& b) {
  const auto joint = std::ranges::find_first_of(a, b);  // the machine joins all
  const auto between = (joint - a.begin()) + (std::ranges::find(b, *joint) - b.begin());
  const bool overPcie = hwloc_obj_type_is_io((*joint)->type) != 0;
  const bool overMachine = (*joint)->parent == nullptr;
  return static_cast<int>(between) + (overPcie ? 0 : overMachine ? 2 * kFurther : kFurther);
}

Result<Distances> measure(const std::string* xml, const std::vector<std::string>& devices) {
  ASSIGN_OR_RETURN(const Topology topology, load(xml));
  std::vector<std::vector<hwloc_obj_t>> lineages;
  for (const std::string& device : devices) {
    hwloc_obj_t nic = nullptr;
    while ((nic = hwloc_get_next_osdev(topology.get(), nic)) != nullptr && device != nic->name) {
    }
    if (nic == nullptr) return errorf(Code::kUnavailable, "hwloc does not know {}", device);
    lineages.push_back(lineage(nic));
  }
  Distances distances;
  for (const auto& from : lineages) {
    std::vector<int>& row = distances.emplace_back();
    for (const auto& to : lineages) row.push_back(distance(from, to));
  }
  return distances;
}

}  // namespace

Result<Distances> nicDistances(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {  // cheaper than to load the topology in vain
    if (access(("/sys/class/net/" + device + "/device").c_str(), F_OK) != 0) {
      return errorf(Code::kUnavailable, "{} is not on PCIe", device.empty() ? "a NIC" : device);
    }
  }
  return measure(nullptr, devices);
}

Result<Distances> nicDistancesIn(const std::string& xml, const std::vector<std::string>& devices) {
  return measure(&xml, devices);
}

#else

Result<Distances> nicDistances(const std::vector<std::string>&) {
  return errorf(Code::kUnavailable, "built without hwloc");
}

Result<Distances> nicDistancesIn(const std::string&, const std::vector<std::string>&) {
  return errorf(Code::kUnavailable, "built without hwloc");
}

#endif

}  // namespace faultline::fabric
