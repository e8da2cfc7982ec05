// Runs a device program in userland, so that its verdicts are tested without root and without devices.
#include "device_eval.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

namespace pinfold::testing {

namespace {

bpf_cgroup_dev_ctx context_for(const DeviceRequest& request) {
    uint32_t access = 0;
    if (request.access.find('r') != std::string::npos) access |= BPF_DEVCG_ACC_READ;
    if (request.access.find('w') != std::string::npos) access |= BPF_DEVCG_ACC_WRITE;
    if (request.access.find('m') != std::string::npos) access |= BPF_DEVCG_ACC_MKNOD;
    const uint32_t type = request.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
    return {access << 16 | type, request.major, request.minor};
}

class Machine {
public:
    Machine(std::span<const bpf_insn> program, const bpf_cgroup_dev_ctx& context)
        : program_(program), context_(context) {}

    uint64_t run() {
        for (;;) {
            const bpf_insn& now = at(next_++);
            if (now.code == (BPF_JMP | BPF_EXIT)) return registers_[0];
            step(now);
        }
    }

private:
    const bpf_insn& at(size_t index) const {
        if (index >= program_.size()) throw std::runtime_error("ran off the end");
        return program_[index];
    }

    void step(const bpf_insn& now) {
        const uint64_t immediate = uint64_t(int64_t(now.imm));
        const uint64_t operand = (now.code & BPF_X) != 0 ? registers_.at(now.src_reg) : immediate;
        uint64_t& target = registers_.at(now.dst_reg);
        switch (BPF_CLASS(now.code)) {
            case BPF_LDX: target = load(now); break;
            case BPF_LD: target = uint32_t(now.imm) | uint64_t(uint32_t(at(next_++).imm)) << 32; break;
            case BPF_ALU64: target = compute(BPF_OP(now.code), target, operand); break;
            case BPF_JMP:
                if (jumps(BPF_OP(now.code), target, operand)) next_ = size_t(int64_t(next_) + now.off);
                break;
            default: throw std::runtime_error("unexpected instruction");
        }
    }

    uint64_t load(const bpf_insn& now) const {
        uint32_t word = 0;
        const auto offset = size_t(now.off);
        if (now.src_reg != 1 || offset + sizeof word > sizeof context_) throw std::runtime_error("wild read");
        std::memcpy(&word, reinterpret_cast<const char*>(&context_) + offset, sizeof word);
        return word;
    }

    static uint64_t compute(int operation, uint64_t target, uint64_t operand) {
        switch (operation) {
            case BPF_MOV: return operand;
            case BPF_AND: return target & operand;
            case BPF_OR: return target | operand;
            case BPF_LSH: return target << operand;
            case BPF_RSH: return target >> operand;
            default: throw std::runtime_error("unexpected arithmetic");
        }
    }

    static bool jumps(int condition, uint64_t value, uint64_t operand) {
        switch (condition) {
            case BPF_JA: return true;
            case BPF_JNE: return value != operand;
            case BPF_JSET: return (value & operand) != 0;
            default: throw std::runtime_error("unexpected jump");
        }
    }

    std::span<const bpf_insn> program_;
    bpf_cgroup_dev_ctx context_;
    std::array<uint64_t, 11> registers_{};
    size_t next_ = 0;
};

}  // namespace

bool device_allowed(std::span<const bpf_insn> program, const DeviceRequest& request) {
    const uint64_t verdict = Machine(program, context_for(request)).run();
    if (verdict > 1) throw std::runtime_error("a verdict that is neither 0 nor 1");
    return verdict == 1;
}

}  // namespace pinfold::testing
