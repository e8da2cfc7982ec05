// A container's id, its record's form on disk, and the state that `pinfold state` prints.
#include "state/record.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "json/reader.hpp"
#include "json/writer.hpp"

namespace pinfold {

namespace {

constexpr size_t kLongestId = 255;  // of a file name

bool is_harmless(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
           c == '-' || c == '.';
}

constexpr uint64_t kRecordVersion = 2;
// What the config may have, and as much again for what is around it.
constexpr JsonBounds kRecordBounds{2 * JsonBounds().values, 2 * JsonBounds().longest};

StringMap string_map(const Json& object, std::string_view key) {
    StringMap strings;
    const Json* found = object.find(key);
    if (found == nullptr || found->object() == nullptr) return strings;
    for (const Json::Member& member : *found->object()) {
        if (member.value.string() != nullptr) strings[member.key] = *member.value.string();
    }
    return strings;
}

std::string to_json(const CgroupPath& place) {
    return JsonObject()
        .add_text("mount", place.mount)
        .add_text("path", place.path)
        .add("legacy", json_map(place.v1))
        .add_text("scope", place.scope)
        .text();
}

CgroupPath place_from_json(const Json& object) {
    return {object.text("mount"), object.text("path"), string_map(object, "legacy"), object.text("scope")};
}

std::string to_json(const std::vector<CgroupWrite>& writes) {
    return json_array(writes, [](const CgroupWrite& write) {
        return json_list({write.file, write.value, write.property, write.alternate_file, write.alternate_value});
    });
}

std::string to_json(const GroupLimits& limits) {
    return JsonObject().add("unified", to_json(limits.v2)).add("legacy", to_json(limits.v1)).text();
}

std::vector<CgroupWrite> writes_from_json(const Json& object, std::string_view key) {
    std::vector<CgroupWrite> writes;
    const Json* list = object.find(key);
    if (list == nullptr || list->array() == nullptr) return writes;
    for (const Json& item : *list->array()) {
        std::vector<std::string> words;
        if (item.array() == nullptr) continue;
        for (const Json& word : *item.array()) words.push_back(word.string() != nullptr ? *word.string() : "");
        words.resize(5);
        writes.push_back({words[0], words[1], words[2], words[3], words[4]});
    }
    return writes;
}

}  // namespace

Result<void> check_container_id(const std::string& id) {
    const bool usable = !id.empty() && id.size() <= kLongestId && id != "." && id != ".." &&
                        std::all_of(id.begin(), id.end(), is_harmless);
    if (usable) return {};
    return plain_error(
        concat("container id ", quoted(id), ": allowed are 1 to 255 letters, digits and the characters _ + - ."));
}

void write_record(const ContainerRecord& record, const std::function<void(std::string_view)>& put) {
    std::string text = JsonObject()
                           .add("version", kRecordVersion)
                           .add_text("id", record.id)
                           .add_text("ociVersion", record.oci_version)
                           .add_text("bundle", record.bundle)
                           .add_text("rootfs", record.rootfs)
                           .add_text("created", record.created)
                           .add("cgroup", to_json(record.cgroup))
                           .add_if_any("limits", record.limits ? to_json(*record.limits) : "")
                           .add("owner", record.owner)
                           .add("poststartHooks", record.poststart_hooks)
                           .add("poststopHooks", record.poststop_hooks)
                           .text();
    text.pop_back();  // there is one more member
    put(text + ",\"annotations\":{");
    const char* comma = "";
    for (const auto& [key, value] : record.annotations) {
        put(concat(std::exchange(comma, ","), json_quoted(key), ":"));
        put(json_quoted(value));
    }
    put("}}\n");
}

std::string record_to_json(const ContainerRecord& record) {
    std::string text;
    write_record(record, [&](std::string_view piece) { text += piece; });
    return text;
}

Result<ContainerRecord> record_from_json(std::string_view text) {
    const Json root = TRY(parse_json(text, "state", kRecordBounds));
    if (root.number("version") != kRecordVersion) {
        return plain_error("the state was written by another version of pinfold")
            .with_hint("delete the container with that version");
    }
    ContainerRecord record;
    record.id = root.text("id");
    record.oci_version = root.text("ociVersion");
    record.bundle = root.text("bundle");
    record.rootfs = root.text("rootfs");
    record.created = root.text("created");
    if (const Json* place = root.find("cgroup")) record.cgroup = place_from_json(*place);
    if (const Json* limits = root.find("limits"))
        record.limits = {writes_from_json(*limits, "unified"), writes_from_json(*limits, "legacy")};
    record.owner = static_cast<uid_t>(root.number("owner"));
    record.poststart_hooks = root.flag("poststartHooks");
    record.poststop_hooks = root.flag("poststopHooks");
    record.annotations = string_map(root, "annotations");
    return record;
}

static std::string state_text(const ContainerState& state, JsonObject object) {
    const ContainerRecord& record = state.record;
    return object.add_text("ociVersion", record.oci_version)
        .add_text("id", record.id)
        .add("pid", state.pid)
        .add_text("status", status_name(state.status))
        .add_text("bundle", record.bundle)
        .add_text("rootfs", record.rootfs)
        .add_text("created", record.created)
        .add_text("owner", std::to_string(record.owner))
        .add("annotations", json_map(record.annotations))
        .text();
}

std::string state_to_json(const ContainerState& state) { return state_text(state, JsonObject::by_lines()); }

std::string state_to_json_line(const ContainerState& state) { return state_text(state, JsonObject()); }

}  // namespace pinfold
