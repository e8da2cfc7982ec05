// The binary itself: what an attacker who has found a mistake in it would like to find is not there.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness.hpp"

namespace pinfold::integration {

namespace {

class Elf {
public:
    explicit Elf(std::string bytes) : bytes_(std::move(bytes)), header_(at<Elf64_Ehdr>(0)) {}

    uint16_t type() const { return header_.e_type; }

    std::vector<Elf64_Phdr> segments(uint32_t type) const {
        std::vector<Elf64_Phdr> found;
        for (const auto& segment : all<Elf64_Phdr>(header_.e_phoff, header_.e_phnum)) {
            if (segment.p_type == type) found.push_back(segment);
        }
        return found;
    }

    // The values of the dynamic section's entries of that kind.
    std::vector<uint64_t> dynamic(int64_t tag) const {
        std::vector<uint64_t> found;
        for (const Elf64_Phdr& segment : segments(PT_DYNAMIC)) {
            for (const auto& entry : all<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn))) {
                if (entry.d_tag == tag) found.push_back(entry.d_un.d_val);
            }
        }
        return found;
    }

    std::set<std::string> symbols() const {
        std::set<std::string> names;
        const auto sections = all<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
        for (const Elf64_Shdr& section : sections) {
            if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
            const size_t texts = sections[section.sh_link].sh_offset;
            for (const auto& symbol : all<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
                names.insert(bytes_.c_str() + texts + symbol.st_name);
            }
        }
        return names;
    }

private:
    template <class Part>
    Part at(size_t offset) const {
        Part part{};
        REQUIRE(offset + sizeof part <= bytes_.size());
        std::memcpy(&part, bytes_.data() + offset, sizeof part);
        return part;
    }
    template <class Part>
    std::vector<Part> all(size_t offset, size_t count) const {
        std::vector<Part> parts;
        for (size_t i = 0; i < count; ++i) parts.push_back(at<Part>(offset + i * sizeof(Part)));
        return parts;
    }

    std::string bytes_;
    Elf64_Ehdr header_;
};

Elf binary() { return Elf(read_text(runtime_command().back())); }

}  // namespace

TEST_CASE("binary: lies at another address each time, and no memory can be both written and run") {
    const Elf elf = binary();
    CHECK(elf.type() == ET_DYN);
    CHECK(elf.dynamic(DT_TEXTREL).empty());
    for (const Elf64_Phdr& segment : elf.segments(PT_LOAD)) CHECK((segment.p_flags & (PF_W | PF_X)) != (PF_W | PF_X));
    REQUIRE(elf.segments(PT_GNU_STACK).size() == 1);
    CHECK((elf.segments(PT_GNU_STACK)[0].p_flags & PF_X) == 0);
}

TEST_CASE("binary: its table of addresses is complete at the start and cannot be written to afterwards") {
    const Elf elf = binary();
    REQUIRE(elf.segments(PT_GNU_RELRO).size() == 1);
    const Elf64_Phdr sealed = elf.segments(PT_GNU_RELRO)[0];
    for (const uint64_t table : elf.dynamic(DT_PLTGOT)) {
        CHECK(table >= sealed.p_vaddr);
        CHECK(table < sealed.p_vaddr + sealed.p_memsz);
    }
    const std::vector<uint64_t> flags = elf.dynamic(DT_FLAGS_1);
    REQUIRE(flags.size() == 1);
    CHECK((flags[0] & DF_1_NOW) != 0);
}

TEST_CASE("binary: notices an overrun stack, and an index beyond the end of its container") {
    const std::set<std::string> symbols = binary().symbols();
    if (symbols.empty()) SKIP_TEST("the binary was stripped: nothing tells what it calls");
    CHECK(symbols.contains("__stack_chk_fail"));
    CHECK(symbols.contains("_ZSt21__glibcxx_assert_failPKciS0_S0_"));
}

// Each start pays for what is done before main. There are the C library's, libcap's, eight of the C++ library's, and
// one of ours, for what CLI11 defines in its headers.
TEST_CASE("binary: makes no streams, no locales and nothing of its own before main") {
    const Elf elf = binary();
    if (!elf.segments(PT_INTERP).empty()) SKIP_TEST("the binary is not the static one");
    const std::set<std::string> symbols = elf.symbols();
    if (symbols.empty()) SKIP_TEST("the binary was stripped: nothing tells what it calls");
    CHECK_FALSE(symbols.contains("_ZNSt8ios_base4InitC1Ev"));
    CHECK_FALSE(symbols.contains("_ZSt4cout"));
    REQUIRE(elf.dynamic(DT_INIT_ARRAYSZ).size() == 1);
    CHECK(elf.dynamic(DT_INIT_ARRAYSZ)[0] / sizeof(void*) <= 12);
    const auto is_ours = [](const std::string& name) {
        return name.starts_with("_GLOBAL__sub_I__ZN7pinfold") && !name.ends_with(".cold");
    };
    CHECK(std::ranges::count_if(symbols, is_ours) <= 1);
}

}  // namespace pinfold::integration
