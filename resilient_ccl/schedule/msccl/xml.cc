#include "resilient_ccl/schedule/msccl/xml.h"

#ifdef FAULTLINE_TINYXML2
#include <tinyxml2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#endif

namespace faultline::schedule::msccl {

#ifdef FAULTLINE_TINYXML2

namespace {

using tinyxml2::XMLElement;

constexpr std::array<std::pair<StepType, const char*>, 8> kTypes{{
    {StepType::kNop, "nop"},
    {StepType::kSend, "s"},
    {StepType::kRecv, "r"},
    {StepType::kRecvCopySend, "rcs"},
    {StepType::kRecvReduceSend, "rrs"},
    {StepType::kRecvReduceCopy, "rrc"},
    {StepType::kRecvReduceCopySend, "rrcs"},
    {StepType::kCopy, "cpy"},
}};

constexpr std::array<std::pair<Collective, const char*>, 6> kCollectives{{
    {Collective::kAllReduce, "allreduce"},
    {Collective::kReduceScatter, "reducescatter"},
    {Collective::kAllGather, "allgather"},
    {Collective::kBroadcast, "broadcast"},
    {Collective::kReduce, "reduce"},
    {Collective::kAllToAll, "alltoall"},
}};

constexpr const char* kOrder = "order";

/// Chunks of input and of output of a rank.
std::pair<int, int> sizes(const Algo& algo) {
  const int block = algo.chunks / static_cast<int>(algo.gpus.size());
  switch (algo.collective) {
    case Collective::kReduceScatter:
      return {algo.chunks, block};
    case Collective::kAllGather:
      return {block, algo.chunks};
    default:
      return {algo.chunks, algo.chunks};
  }
}

// --- writing ---

void writeStep(XMLElement& parent, int number, const Step& step) {
  XMLElement& element = *parent.InsertNewChildElement("step");
  element.SetAttribute("s", number);
  for (const auto& [type, name] : kTypes) {
    if (type == step.type) element.SetAttribute("type", name);
  }
  const auto place = [&](const char* buffer, const char* offset, const Place& where) {
    element.SetAttribute(buffer, where.buffer == Buffer::kInput ? "i" : "o");
    element.SetAttribute(offset, where.offset);
  };
  place("srcbuf", "srcoff", step.source);
  place("dstbuf", "dstoff", step.destination);
  element.SetAttribute("cnt", step.count);
  element.SetAttribute("depid", step.waitBlock);
  element.SetAttribute("deps", step.waitStep);
  element.SetAttribute("hasdep", step.waitedFor ? 1 : 0);
  if (step.order >= 0) element.SetAttribute(kOrder, step.order);
}

// --- reading ---

Status wrong(const XMLElement& element, std::string_view what) {
  return errorf(Code::kInvalidArgument, "line {}: <{}> {}", element.GetLineNum(), element.Name(),
                what);
}

Result<int> number(const XMLElement& element, const char* key, int least, int most) {
  int value = 0;
  if (element.QueryIntAttribute(key, &value) != tinyxml2::XML_SUCCESS) {
    return wrong(element, fmt::format("needs {} as a number", key));
  }
  if (value < least || value > most) {
    return wrong(element, fmt::format("has {} = {}, not in {}..{}", key, value, least, most));
  }
  return value;
}

/// What is missing in a short form has a usual value.
Result<int> numberOr(const XMLElement& element, const char* key, int otherwise, int least,
                     int most) {
  if (element.FindAttribute(key) == nullptr) return otherwise;
  return number(element, key, least, most);
}

/// Refuses attributes that are not known, and text: they would say what nobody reads.
Status checkAttributes(const XMLElement& element, std::initializer_list<std::string_view> known) {
  const std::vector<std::string_view> names(known);
  for (const tinyxml2::XMLAttribute* one = element.FirstAttribute(); one != nullptr;
       one = one->Next()) {
    if (std::ranges::find(names, std::string_view(one->Name())) != names.end()) continue;
    return errorf(Code::kInvalidArgument,
                  "line {}: <{}> has an attribute '{}', which is not known{}", one->GetLineNum(),
                  element.Name(), printable(one->Name()), suggestion(one->Name(), names));
  }
  for (const tinyxml2::XMLNode* child = element.FirstChild(); child != nullptr;
       child = child->NextSibling()) {
    if (child->ToText() == nullptr) continue;
    return errorf(Code::kInvalidArgument, "line {}: <{}> has text in it", child->GetLineNum(),
                  element.Name());
  }
  return okStatus();
}

/// That only such elements are in it.
Status checkChildren(const XMLElement& element, std::initializer_list<std::string_view> known) {
  const std::vector<std::string_view> names(known);
  for (const XMLElement* child = element.FirstChildElement(); child != nullptr;
       child = child->NextSiblingElement()) {
    if (std::ranges::find(names, std::string_view(child->Name())) != names.end()) continue;
    return errorf(Code::kInvalidArgument, "line {}: <{}> has an element <{}>, which is not known{}",
                  child->GetLineNum(), element.Name(), printable(child->Name()),
                  suggestion(child->Name(), names));
  }
  return okStatus();
}

template <typename Value, std::size_t kCount>
Result<Value> named(const XMLElement& element, const char* key,
                    const std::array<std::pair<Value, const char*>, kCount>& names,
                    const char* otherwise) {
  const char* text = element.Attribute(key);
  for (const auto& [value, name] : names) {
    if (text != nullptr && std::strcmp(text, name) == 0) return value;
  }
  return wrong(element,
               fmt::format("has {} = '{}'; {}", key, text == nullptr ? "" : text, otherwise));
}

class Reader {
 public:
  Result<Algo> read(const XMLElement& root) {
    if (std::strcmp(root.Name(), "algo") != 0) return wrong(root, "is no <algo>");
    RETURN_IF_ERROR(
        checkAttributes(root, {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll",
                               "inplace", "outofplace", "minBytes", "maxBytes"}));
    RETURN_IF_ERROR(checkChildren(root, {"gpu"}));
    if (const char* name = root.Attribute("name")) algo_.name = name;
    if (const char* protocol = root.Attribute("proto")) algo_.protocol = protocol;
    ASSIGN_OR_RETURN(algo_.collective, named(root, "coll", kCollectives,
                                             "known are the collectives of Faultline that MSCCL "
                                             "has, allreduce and others"));
    ASSIGN_OR_RETURN(algo_.channels, number(root, "nchannels", 1, kMaxChannels));
    ASSIGN_OR_RETURN(algo_.chunks, readChunks(root));
    ASSIGN_OR_RETURN(const int ranks, number(root, "ngpus", 1, kMaxRanks));
    ASSIGN_OR_RETURN(const int inPlace, number(root, "inplace", 0, 1));
    algo_.inPlace = inPlace == 1;
    if (algo_.inPlace == hasOutput(algo_.collective)) {
      return wrong(root, algo_.inPlace ? "is in place; an AllToAll of Faultline has an output"
                                       : "works only out of place; Faultline needs it in place");
    }
    if (hasBlocks(algo_.collective) && algo_.chunks % ranks != 0) {
      return wrong(root, fmt::format("has {} chunks, which {} ranks cannot share evenly",
                                     algo_.chunks, ranks));
    }
    algo_.gpus.resize(static_cast<std::size_t>(ranks));
    RETURN_IF_ERROR(refuseScratch(root));
    std::vector<bool> seen(algo_.gpus.size(), false);
    for (const XMLElement* gpu = root.FirstChildElement("gpu"); gpu != nullptr;
         gpu = gpu->NextSiblingElement("gpu")) {
      ASSIGN_OR_RETURN(const int id, number(*gpu, "id", 0, ranks - 1));
      if (seen[static_cast<std::size_t>(id)]) return wrong(*gpu, "is there twice");
      seen[static_cast<std::size_t>(id)] = true;
      RETURN_IF_ERROR(readGpu(*gpu, id));
    }
    for (int id = 0; id < ranks; ++id) {
      if (!seen[static_cast<std::size_t>(id)]) {
        return wrong(root, fmt::format("has no <gpu id=\"{}\">", id));
      }
    }
    return std::move(algo_);
  }

 private:
  /// The newer form leaves out `nchunksperloop`: it is the larger of the buffers.
  static Result<int> readChunks(const XMLElement& root) {
    if (root.FindAttribute("nchunksperloop") != nullptr) {
      return number(root, "nchunksperloop", 1, kMaxChunks);
    }
    int chunks = 0;
    for (const XMLElement* gpu = root.FirstChildElement("gpu"); gpu != nullptr;
         gpu = gpu->NextSiblingElement("gpu")) {
      for (const char* key : {"i_chunks", "o_chunks"}) {
        ASSIGN_OR_RETURN(const int size, number(*gpu, key, 0, kMaxChunks));
        chunks = std::max(chunks, size);
      }
    }
    if (chunks == 0) return wrong(root, "has neither nchunksperloop nor a <gpu> with chunks");
    return chunks;
  }

  /// Before anything else is said of steps that use it.
  static Status refuseScratch(const XMLElement& root) {
    for (const XMLElement* gpu = root.FirstChildElement("gpu"); gpu != nullptr;
         gpu = gpu->NextSiblingElement("gpu")) {
      ASSIGN_OR_RETURN(const int scratch, numberOr(*gpu, "s_chunks", 0, 0, kMaxChunks));
      if (scratch == 0) continue;
      return wrong(*gpu, fmt::format("has a scratch buffer (s_chunks = {}), which schedules of "
                                     "Faultline do not have: use an algorithm that works in its "
                                     "input and output",
                                     scratch));
    }
    return okStatus();
  }

  Status readGpu(const XMLElement& gpu, int id) {
    RETURN_IF_ERROR(checkAttributes(gpu, {"id", "i_chunks", "o_chunks", "s_chunks"}));
    RETURN_IF_ERROR(checkChildren(gpu, {"tb"}));
    for (const char* key : {"i_chunks", "o_chunks"}) {
      RETURN_IF_ERROR(numberOr(gpu, key, 0, 0, kMaxChunks).status());
    }
    std::vector<ThreadBlock>& blocks = algo_.gpus[static_cast<std::size_t>(id)].blocks;
    for (const XMLElement* tb = gpu.FirstChildElement("tb"); tb != nullptr;
         tb = tb->NextSiblingElement("tb")) {
      RETURN_IF_ERROR(checkAttributes(*tb, {"id", "send", "recv", "chan"}));
      RETURN_IF_ERROR(checkChildren(*tb, {"step", "op"}));
      const int next = static_cast<int>(blocks.size());
      ASSIGN_OR_RETURN(const int number_,
                       number(*tb, "id", 0, kMaxBlocksPerChannel * kMaxChannels));
      if (number_ != next)
        return wrong(*tb, fmt::format("has id = {}; expected {}", number_, next));
      ThreadBlock block;
      const int last = static_cast<int>(algo_.gpus.size()) - 1;
      ASSIGN_OR_RETURN(block.sendPeer, number(*tb, "send", -1, last));
      ASSIGN_OR_RETURN(block.recvPeer, number(*tb, "recv", -1, last));
      ASSIGN_OR_RETURN(block.channel, number(*tb, "chan", 0, algo_.channels - 1));
      if (block.sendPeer == id || block.recvPeer == id) return wrong(*tb, "has itself as a peer");
      for (const XMLElement* step = tb->FirstChildElement(); step != nullptr;
           step = step->NextSiblingElement()) {
        ASSIGN_OR_RETURN(Step read, readStep(*step, static_cast<int>(block.steps.size())));
        if ((sends(read.type) && block.sendPeer < 0) ||
            (receives(read.type) && block.recvPeer < 0)) {
          return wrong(*step, "has no peer in its thread block");
        }
        block.steps.push_back(read);
      }
      blocks.push_back(std::move(block));
    }
    return checkWaits(gpu, blocks);
  }

  /// A step in either of the two forms of msccl-tools: the old <step s srcbuf srcoff dstbuf dstoff
  /// cnt depid deps hasdep>, or the newer <op step buf off>, in which what is usual is left out.
  Result<Step> readStep(const XMLElement& element, int expected) {
    const bool isShort = std::strcmp(element.Name(), "op") == 0;
    if (isShort) {
      RETURN_IF_ERROR(checkAttributes(
          element, {"step", "type", "buf", "off", "cnt", "depid", "deps", "hasdep", kOrder}));
    } else {
      RETURN_IF_ERROR(checkAttributes(element, {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff",
                                                "cnt", "depid", "deps", "hasdep", kOrder}));
    }
    RETURN_IF_ERROR(checkChildren(element, {}));
    const char* const place = isShort ? "step" : "s";
    ASSIGN_OR_RETURN(const int s, number(element, place, 0, kMaxSteps - 1));
    if (s != expected) {
      return wrong(element, fmt::format("has {} = {}; expected {}", place, s, expected));
    }
    Step step;
    ASSIGN_OR_RETURN(step.type, named(element, "type", kTypes,
                                      "known are nop, s, r, rcs, rrs, rrc, rrcs and cpy; Faultline "
                                      "has no local reduction (re)"));
    if (isShort && step.type == StepType::kCopy) {
      return wrong(element,
                   "of type cpy does not say what is copied: write it as <step> with srcbuf, "
                   "srcoff, dstbuf and dstoff");
    }
    const auto numberOf = [&](const char* key, int usual, int least, int most) {
      return isShort ? numberOr(element, key, usual, least, most)
                     : number(element, key, least, most);
    };
    const int one = step.type == StepType::kNop ? 0 : 1;
    ASSIGN_OR_RETURN(step.count, numberOf("cnt", one, 0, kMaxCount));
    // A block may be waited for that is read later: `checkWaits`.
    ASSIGN_OR_RETURN(step.waitBlock,
                     numberOf("depid", -1, -1, kMaxBlocksPerChannel * kMaxChannels));
    ASSIGN_OR_RETURN(step.waitStep, numberOf("deps", -1, -1, kMaxSteps - 1));
    ASSIGN_OR_RETURN(const int waitedFor, numberOf("hasdep", 0, 0, 1));
    step.waitedFor = waitedFor == 1;
    if (element.FindAttribute(kOrder) != nullptr) {
      constexpr int kMostOrder = 1 << 24;
      ASSIGN_OR_RETURN(step.order, number(element, kOrder, 0, kMostOrder));
    }
    const bool hasSource = step.type != StepType::kNop && step.type != StepType::kRecv &&
                           step.type != StepType::kRecvCopySend;
    const bool hasDestination = step.type != StepType::kNop && step.type != StepType::kSend &&
                                step.type != StepType::kRecvReduceSend;
    if (step.type != StepType::kNop && step.count == 0) return wrong(element, "has cnt = 0");
    if (hasSource) {
      ASSIGN_OR_RETURN(step.source, readPlace(element, isShort ? "buf" : "srcbuf",
                                              isShort ? "off" : "srcoff", step.count));
    }
    if (hasDestination) {
      ASSIGN_OR_RETURN(step.destination, readPlace(element, isShort ? "buf" : "dstbuf",
                                                   isShort ? "off" : "dstoff", step.count));
    }
    return step;
  }

  Result<Place> readPlace(const XMLElement& element, const char* bufferKey, const char* offsetKey,
                          int count) {
    constexpr std::array<std::pair<Buffer, const char*>, 2> kBuffers{
        {{Buffer::kInput, "i"}, {Buffer::kOutput, "o"}}};
    Place place;
    ASSIGN_OR_RETURN(place.buffer, named(element, bufferKey, kBuffers,
                                         "known are i and o, and no scratch buffer (s)"));
    const auto [input, output] = sizes(algo_);
    const int size = place.buffer == Buffer::kInput ? input : output;
    ASSIGN_OR_RETURN(place.offset, number(element, offsetKey, 0, size - count));
    return place;
  }

  static Status checkWaits(const XMLElement& gpu, const std::vector<ThreadBlock>& blocks) {
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      const std::vector<Step>& steps = blocks[block].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const Step& step = steps[s];
        if (step.waitBlock < 0) continue;
        const auto waited = static_cast<std::size_t>(step.waitBlock);
        if (waited >= blocks.size() || step.waitStep < 0 ||
            static_cast<std::size_t>(step.waitStep) >= blocks[waited].steps.size()) {
          return wrong(gpu, fmt::format("tb {} step {} waits for tb {} step {}, which is not there",
                                        block, s, step.waitBlock, step.waitStep));
        }
      }
    }
    return okStatus();
  }

  Algo algo_;
};

}  // namespace

Result<std::string> toXml(const Algo& algo) {
  tinyxml2::XMLDocument document;
  XMLElement* root = document.NewElement("algo");
  document.InsertEndChild(root);
  root->SetAttribute("name", printable(algo.name).c_str());
  root->SetAttribute("proto", printable(algo.protocol).c_str());
  root->SetAttribute("nchannels", algo.channels);
  root->SetAttribute("nchunksperloop", algo.chunks);
  root->SetAttribute("ngpus", static_cast<int>(algo.gpus.size()));
  for (const auto& [collective, name] : kCollectives) {
    if (collective == algo.collective) root->SetAttribute("coll", name);
  }
  root->SetAttribute("inplace", algo.inPlace ? 1 : 0);
  root->SetAttribute("outofplace", algo.inPlace ? 0 : 1);
  root->SetAttribute("minBytes", 0);
  root->SetAttribute("maxBytes", 0);  // no limit
  const auto [input, output] = sizes(algo);
  int id = 0;
  for (const Gpu& gpu : algo.gpus) {
    XMLElement& element = *root->InsertNewChildElement("gpu");
    element.SetAttribute("id", id++);
    element.SetAttribute("i_chunks", input);
    element.SetAttribute("o_chunks", output);
    element.SetAttribute("s_chunks", 0);
    int block = 0;
    for (const ThreadBlock& made : gpu.blocks) {
      XMLElement& tb = *element.InsertNewChildElement("tb");
      tb.SetAttribute("id", block++);
      tb.SetAttribute("send", made.sendPeer);
      tb.SetAttribute("recv", made.recvPeer);
      tb.SetAttribute("chan", made.channel);
      int step = 0;
      for (const Step& each : made.steps) writeStep(tb, step++, each);
    }
  }
  tinyxml2::XMLPrinter printer;
  document.Print(&printer);
  return std::string(printer.CStr());
}

Result<Algo> fromXml(std::string_view xml) {
  tinyxml2::XMLDocument document;
  if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS) {
    return errorf(Code::kInvalidArgument, "line {}: no XML: {}", document.ErrorLineNum(),
                  document.ErrorName());
  }
  const XMLElement* root = document.RootElement();
  if (root == nullptr) return errorf(Code::kInvalidArgument, "an XML document without an element");
  for (const tinyxml2::XMLNode* more = root->NextSibling(); more != nullptr;
       more = more->NextSibling()) {
    if (more->ToComment() != nullptr) continue;
    return errorf(Code::kInvalidArgument, "line {}: more behind the end of <{}>: a file has one",
                  more->GetLineNum(), printable(root->Name()));
  }
  return Reader().read(*root);
}

#else

namespace {
Status missing() {
  return errorf(Code::kUnsupported,
                "MSCCL XML needs tinyxml2, which was not there when this program was built");
}
}  // namespace

Result<std::string> toXml(const Algo& /*algo*/) { return missing(); }
Result<Algo> fromXml(std::string_view /*xml*/) { return missing(); }

#endif

}  // namespace faultline::schedule::msccl
