// The record's form on disk, and the state that `pinfold state` prints.
#include "state/record.hpp"

#include "base/strings.hpp"
#include "spec/json.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kRecordVersion = 2;
// What the config may have, and as much again for what is around it.
constexpr JsonBounds kRecordBounds{2 * JsonBounds().values, 2 * JsonBounds().longest};

std::string string_text(const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
}

uint64_t number(const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value != nullptr && value->unsigned_integer() != nullptr ? *value->unsigned_integer() : 0;
}

bool flag(const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value != nullptr && value->boolean() != nullptr && *value->boolean();
}

const char* boolean(bool value) { return value ? "true" : "false"; }

std::string strings_to_json(const StringMap& strings) {
    std::string out = "{";
    for (const auto& [key, value] : strings) {
        out += concat(out.size() == 1 ? "" : ",", json_quoted(key), ":", json_quoted(value));
    }
    return out + "}";
}

StringMap string_map(const Json& object, std::string_view key) {
    StringMap strings;
    const Json* found = object.find(key);
    if (found == nullptr || found->object() == nullptr) return strings;
    for (const Json::Member& member : *found->object()) {
        if (member.value.string() != nullptr) strings[member.key] = *member.value.string();
    }
    return strings;
}

std::string to_json(const CgroupPlace& place) {
    return concat("{\"mount\":", json_quoted(place.mount), ",\"path\":", json_quoted(place.path),
                  ",\"legacy\":", strings_to_json(place.legacy), ",\"scope\":", json_quoted(place.scope), "}");
}

CgroupPlace place_from_json(const Json& object) {
    return {string_text(object, "mount"), string_text(object, "path"), string_map(object, "legacy"),
            string_text(object, "scope")};
}

std::string to_json(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> items;
    for (const CgroupWrite& write : writes) {
        std::vector<std::string> words;
        for (const std::string* word :
             {&write.file, &write.value, &write.property, &write.twin_file, &write.twin_value})
            words.push_back(json_quoted(*word));
        items.push_back(concat('[', join(words, ","), ']'));
    }
    return concat('[', join(items, ","), ']');
}

std::string to_json(const GroupLimits& limits) {
    return concat("{\"unified\":", to_json(limits.unified), ",\"legacy\":", to_json(limits.legacy), "}");
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

void write_record(const ContainerRecord& record, const std::function<void(std::string_view)>& put) {
    put(concat("{\"version\":", kRecordVersion, ",\"id\":", json_quoted(record.id),
               ",\"ociVersion\":", json_quoted(record.oci_version), ",\"bundle\":", json_quoted(record.bundle),
               ",\"rootfs\":", json_quoted(record.rootfs), ",\"created\":", json_quoted(record.created), ",\"cgroup\":",
               to_json(record.cgroup), record.limits ? concat(",\"limits\":", to_json(*record.limits)) : "",
               ",\"owner\":", record.owner, ",\"poststartHooks\":", boolean(record.poststart_hooks),
               ",\"poststopHooks\":", boolean(record.poststop_hooks), ",\"annotations\":{"));
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
    if (number(root, "version") != kRecordVersion) {
        return plain_error("the state was written by another version of pinfold")
            .with_hint("delete the container with that version");
    }
    ContainerRecord record;
    record.id = string_text(root, "id");
    record.oci_version = string_text(root, "ociVersion");
    record.bundle = string_text(root, "bundle");
    record.rootfs = string_text(root, "rootfs");
    record.created = string_text(root, "created");
    if (const Json* place = root.find("cgroup")) record.cgroup = place_from_json(*place);
    if (const Json* limits = root.find("limits"))
        record.limits = {writes_from_json(*limits, "unified"), writes_from_json(*limits, "legacy")};
    record.owner = static_cast<uid_t>(number(root, "owner"));
    record.poststart_hooks = flag(root, "poststartHooks");
    record.poststop_hooks = flag(root, "poststopHooks");
    record.annotations = string_map(root, "annotations");
    return record;
}

// The properties of a state, with `gap` between them and `colon` after each name.
static std::string state_members(const ContainerState& state, std::string_view gap, std::string_view colon) {
    const ContainerRecord& record = state.record;
    const auto member = [&](const char* name, const std::string& value) {
        return concat(json_quoted(name), colon, value);
    };
    return join({member("ociVersion", json_quoted(record.oci_version)), member("id", json_quoted(record.id)),
                 member("pid", std::to_string(state.pid)), member("status", json_quoted(status_name(state.status))),
                 member("bundle", json_quoted(record.bundle)), member("rootfs", json_quoted(record.rootfs)),
                 member("created", json_quoted(record.created)), member("owner", concat("\"", record.owner, "\"")),
                 member("annotations", strings_to_json(record.annotations))},
                concat(",", gap));
}

std::string state_to_json(const ContainerState& state) {
    return concat("{\n  ", state_members(state, "\n  ", ": "), "\n}\n");
}

std::string state_to_json_line(const ContainerState& state) { return concat("{", state_members(state, "", ":"), "}"); }

}  // namespace pinfold
