// Which devices a group may use: linux.resources.devices as an eBPF program, and its way into the kernel.
// The kernel calls it at each open and mknod of a device, with struct bpf_cgroup_dev_ctx; 1 allows, 0 denies.
#include "cgroup/device_program.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

constexpr uint8_t kRead = BPF_DEVCG_ACC_READ;
constexpr uint8_t kWrite = BPF_DEVCG_ACC_WRITE;
constexpr uint8_t kBlock = BPF_DEVCG_DEV_BLOCK;
constexpr uint8_t kChar = BPF_DEVCG_DEV_CHAR;
constexpr uint8_t kAnyType = 0;
constexpr int32_t kAny = -1;
constexpr int64_t kMaxMajor = 0xfff;  // the kernel's dev_t has 12 and 20 bits
constexpr int64_t kMaxMinor = 0xfffff;

// A rule in the program's terms. Making a node is not among them: it is always allowed, since using it is what
// counts, and so it is decided before the first match. Any type implies any major and any minor.
struct Match {
    bool allow = false;
    uint8_t type = kAnyType;
    int32_t major = kAny;
    int32_t minor = kAny;
    uint8_t access = kRead | kWrite;

    bool partial() const { return access != (kRead | kWrite); }
    bool everything() const { return type == kAnyType && !partial(); }
    bool covers(const Match& other) const {
        return (type == kAnyType || type == other.type) && (major == kAny || major == other.major) &&
               (minor == kAny || minor == other.minor) && (other.access & ~access) == 0;
    }
};

uint8_t access_bits(const std::string& access) {
    if (access.empty()) return kRead | kWrite;
    const unsigned read = access.find('r') != std::string::npos ? kRead : 0;
    const unsigned write = access.find('w') != std::string::npos ? kWrite : 0;
    return static_cast<uint8_t>(read | write);
}

// What is left to decide once rules that can never decide anything are gone: newest first, then the verdict for
// the rest. Engines send lists that end up as the standard devices alone, and a short program loads faster.
class Decision {
public:
    explicit Decision(std::span<const DeviceRule> rules) {
        for (const StandardDevice& device : kStandardDevices) consider(Match{true, kChar, device.major, device.minor});
        // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot compile libstdc++ 12's views::reverse
        for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) consider(*rule);
        if (matches_.back().everything()) {
            otherwise_ = matches_.back().allow;
            matches_.pop_back();
        }
        while (!matches_.empty() && matches_.back().allow == otherwise_) matches_.pop_back();
    }

    const std::vector<Match>& matches() const { return matches_; }
    bool otherwise() const { return otherwise_; }

private:
    void consider(const Match& match) {
        const bool covered = std::ranges::any_of(matches_, [&](const Match& newer) { return newer.covers(match); });
        if (!covered) matches_.push_back(match);
    }

    // Engines write -1 for "any".
    void consider(const DeviceRule& rule) {
        const int64_t major = rule.major.value_or(kAny);
        const int64_t minor = rule.minor.value_or(kAny);
        const uint8_t access = access_bits(rule.access);
        if (major > kMaxMajor || minor > kMaxMinor || access == 0) return;  // nothing will ever match
        Match match{rule.allow, kAnyType, static_cast<int32_t>(std::max<int64_t>(major, kAny)),
                    static_cast<int32_t>(std::max<int64_t>(minor, kAny)), access};
        const bool any_type = rule.type != 'b' && rule.type != 'c';
        if (any_type && match.major == kAny && match.minor == kAny) return consider(match);
        for (const auto& [letter, type] : {std::pair('c', kChar), std::pair('b', kBlock)}) {
            match.type = type;
            if (any_type || rule.type == letter) consider(match);
        }
    }

    std::vector<Match> matches_;
    bool otherwise_ = false;
};

// The program's registers. Each kind of match compares one register with one constant: the verifier follows every
// outcome of every comparison, and with type, major and minor compared one after the other it took time in the
// square of the number of rules (5 ms for 70 of them).
constexpr uint8_t kVerdict = BPF_REG_0;
constexpr uint8_t kContext = BPF_REG_1;
constexpr uint8_t kType = BPF_REG_2;
constexpr uint8_t kWanted = BPF_REG_3;     // of read and write, what no rule has allowed so far
constexpr uint8_t kMajorKey = BPF_REG_4;   // major << 2 | type
constexpr uint8_t kMinorKey = BPF_REG_5;   // minor << 2 | type
constexpr uint8_t kDeviceKey = BPF_REG_6;  // major << 22 | minor << 2 | type: fits an instruction for all real majors
constexpr uint8_t kConstant = BPF_REG_7;
constexpr int kTypeBits = 2;
constexpr int kMajorShift = 22;

class Assembler {
public:
    void load(uint8_t target, size_t offset) {
        emit(BPF_LDX | BPF_MEM | BPF_W, target, kContext, static_cast<int16_t>(offset), 0);
    }
    void compute(uint8_t operation, uint8_t target, int32_t value) {
        emit(static_cast<uint8_t>(BPF_ALU64 | BPF_K | operation), target, 0, 0, value);
    }
    void combine(uint8_t operation, uint8_t target, uint8_t source) {
        emit(static_cast<uint8_t>(BPF_ALU64 | BPF_X | operation), target, source, 0, 0);
    }
    void skip_if(uint8_t condition, uint8_t reg, int32_t value, int16_t count) {
        emit(static_cast<uint8_t>(BPF_JMP | BPF_K | condition), reg, 0, count, value);
    }
    void skip_unless_equal(uint8_t reg, int64_t value, int16_t count) {
        if (value <= INT32_MAX) return skip_if(BPF_JNE, reg, static_cast<int32_t>(value), count);
        emit(BPF_LD | BPF_DW | BPF_IMM, kConstant, 0, 0, static_cast<int32_t>(value));
        emit(0, 0, 0, 0, static_cast<int32_t>(value >> 32));
        emit(BPF_JMP | BPF_X | BPF_JNE, reg, kConstant, count, 0);
    }
    void skip(int16_t count) { emit(BPF_JMP | BPF_JA, 0, 0, count, 0); }
    void exit() { emit(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
    std::vector<bpf_insn> take() { return std::move(code_); }

private:
    void emit(uint8_t code, uint8_t target, uint8_t source, int16_t offset, int32_t value) {
        bpf_insn instruction{};
        instruction.code = code;
        instruction.dst_reg = target & 15;
        instruction.src_reg = source & 15;
        instruction.off = offset;
        instruction.imm = value;
        code_.push_back(instruction);
    }

    std::vector<bpf_insn> code_;
};

// Allows what asks for no more than making a node, and computes the keys.
void emit_start(Assembler& code) {
    code.load(kType, offsetof(bpf_cgroup_dev_ctx, access_type));
    code.combine(BPF_MOV, kWanted, kType);
    code.compute(BPF_RSH, kWanted, 16);
    code.compute(BPF_AND, kWanted, kRead | kWrite);
    code.compute(BPF_MOV, kVerdict, 1);
    code.skip_if(BPF_JNE, kWanted, 0, 1);
    code.exit();
    code.compute(BPF_AND, kType, 0xffff);
    code.load(kMajorKey, offsetof(bpf_cgroup_dev_ctx, major));
    code.load(kMinorKey, offsetof(bpf_cgroup_dev_ctx, minor));
    code.combine(BPF_MOV, kDeviceKey, kMajorKey);
    code.compute(BPF_LSH, kDeviceKey, kMajorShift);
    code.compute(BPF_LSH, kMajorKey, kTypeBits);
    code.combine(BPF_OR, kMajorKey, kType);
    code.compute(BPF_LSH, kMinorKey, kTypeBits);
    code.combine(BPF_OR, kMinorKey, kType);
    code.combine(BPF_OR, kDeviceKey, kMinorKey);
}

void skip_other_devices(const Match& match, int16_t count, Assembler& code) {
    const int64_t major_key = int64_t(match.major) << kTypeBits | match.type;
    const int64_t minor_key = int64_t(match.minor) << kTypeBits | match.type;
    if (match.major != kAny && match.minor != kAny) {
        code.skip_unless_equal(kDeviceKey, int64_t(match.major) << kMajorShift | minor_key, count);
    } else if (match.major != kAny) {
        code.skip_unless_equal(kMajorKey, major_key, count);
    } else if (match.minor != kAny) {
        code.skip_unless_equal(kMinorKey, minor_key, count);
    } else if (match.type != kAnyType) {
        code.skip_unless_equal(kType, match.type, count);
    }
}

// Leaves the program with the verdict in place if the match decides, else goes on behind these instructions.
void emit_match(const Match& match, Assembler& code) {
    skip_other_devices(match, match.partial() ? 3 : 1, code);
    if (match.partial() && match.allow) {
        code.compute(BPF_AND, kWanted, (kRead | kWrite) & ~match.access);
        code.skip_if(BPF_JNE, kWanted, 0, 1);
    } else if (match.partial()) {
        code.skip_if(BPF_JSET, kWanted, match.access, 1);
        code.skip(1);
    }
    code.exit();
}

int bpf(bpf_cmd command, bpf_attr& attributes) {
    return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// How pinfold finds its own program again.
constexpr std::string_view kProgramName = "pinfold";

bpf_attr load_attributes(std::span<const bpf_insn> program) {
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.expected_attach_type = BPF_CGROUP_DEVICE;
    attributes.insns = address(program.data());
    attributes.insn_cnt = static_cast<uint32_t>(program.size());
    attributes.license = address("");
    std::ranges::copy(kProgramName, attributes.prog_name);
    return attributes;
}

// The verifier explains itself only when asked, which slows every load down: so it is asked after a refusal.
void log_verifier(std::span<const bpf_insn> program) {
    std::string text(size_t{64} * 1024, '\0');
    bpf_attr attributes = load_attributes(program);
    attributes.log_level = 1;
    attributes.log_buf = address(text.data());
    attributes.log_size = static_cast<uint32_t>(text.size());
    const UniqueFd loaded(bpf(BPF_PROG_LOAD, attributes));
    log_debug(concat("device program refused: ", text.c_str()));
}

Result<UniqueFd> load_program(std::span<const bpf_insn> program) {
    bpf_attr attributes = load_attributes(program);
    UniqueFd loaded(bpf(BPF_PROG_LOAD, attributes));
    if (loaded) return loaded;
    const Error error = errno_error("linux.resources.devices: load the device program");
    if (debug_enabled()) log_verifier(program);
    return error;
}

// Adds the program to what is attached already, or puts it in the place of one of them.
Result<void> attach(int cgroup_fd, std::span<const bpf_insn> program, const UniqueFd& replaced) {
    const UniqueFd loaded = TRY(load_program(program));
    bpf_attr attributes{};
    attributes.target_fd = static_cast<uint32_t>(cgroup_fd);
    attributes.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    if (replaced) {
        attributes.attach_flags |= BPF_F_REPLACE;
        attributes.replace_bpf_fd = static_cast<uint32_t>(replaced.get());
    }
    if (bpf(BPF_PROG_ATTACH, attributes) < 0) return errno_error("linux.resources.devices: attach the device program");
    return {};
}

// The ids of the programs that are attached to this very group.
Result<std::vector<uint32_t>> attached_programs(int cgroup_fd) {
    std::vector<uint32_t> ids(64);  // as many as the kernel allows in one group
    bpf_attr attributes{};
    attributes.query.target_fd = static_cast<uint32_t>(cgroup_fd);
    attributes.query.attach_type = BPF_CGROUP_DEVICE;
    attributes.query.prog_ids = address(ids.data());
    attributes.query.prog_cnt = static_cast<uint32_t>(ids.size());
    if (bpf(BPF_PROG_QUERY, attributes) < 0) return errno_error("linux.resources.devices: list the device programs");
    ids.resize(attributes.query.prog_cnt);
    return ids;
}

bool is_own(const UniqueFd& program) {
    bpf_prog_info info{};
    bpf_attr attributes{};
    attributes.info.bpf_fd = static_cast<uint32_t>(program.get());
    attributes.info.info = address(&info);
    attributes.info.info_len = sizeof info;
    return bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0 && info.name == kProgramName;
}

// Pinfold's own among them; empty where there is none.
Result<UniqueFd> find_own_program(int cgroup_fd) {
    for (const uint32_t id : TRY(attached_programs(cgroup_fd))) {
        bpf_attr attributes{};
        attributes.prog_id = id;
        UniqueFd program(bpf(BPF_PROG_GET_FD_BY_ID, attributes));
        if (program && is_own(program)) return program;
    }
    return UniqueFd();
}

}  // namespace

std::vector<bpf_insn> device_program(std::span<const DeviceRule> rules) {
    const Decision decision(rules);
    Assembler code;
    emit_start(code);
    bool verdict = true;
    const auto decide_for = [&](bool allow) {
        if (verdict != allow) code.compute(BPF_MOV, kVerdict, allow);
        verdict = allow;
    };
    for (const Match& match : decision.matches()) {
        decide_for(match.allow);
        emit_match(match, code);
    }
    decide_for(decision.otherwise());
    code.exit();
    return code.take();
}

bool allows_every_device(std::span<const DeviceRule> rules) {
    const Decision decision(rules);
    return decision.otherwise() && decision.matches().empty();
}

Result<void> attach_device_program(int cgroup_fd, std::span<const bpf_insn> program) {
    return attach(cgroup_fd, program, UniqueFd());
}

Result<void> replace_device_program(int cgroup_fd, std::span<const bpf_insn> program) {
    return attach(cgroup_fd, program, TRY(find_own_program(cgroup_fd)));
}

}  // namespace pinfold
