// SHA-256, as FIPS 180-4 describes it; the names a to h are the standard's.
#include "base/sha256.hpp"

#include <bit>
#include <cstddef>

namespace pinfold {

namespace {

using State = std::array<uint32_t, 8>;

constexpr size_t kBlockSize = 64;
constexpr size_t kLengthSize = 8;

constexpr State kInitialState = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t big_endian_word(const char* bytes) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word = word << 8 | static_cast<uint8_t>(bytes[i]);
    return word;
}

// The block's sixteen words, and forty-eight more made of them.
std::array<uint32_t, 64> message_schedule(const char* block) {
    std::array<uint32_t, 64> schedule;
    for (size_t t = 0; t < 16; ++t) schedule[t] = big_endian_word(block + 4 * t);
    for (size_t t = 16; t < 64; ++t) {
        const uint32_t early = schedule[t - 15];
        const uint32_t late = schedule[t - 2];
        const uint32_t sigma0 = std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3);
        const uint32_t sigma1 = std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10);
        schedule[t] = schedule[t - 16] + sigma0 + schedule[t - 7] + sigma1;
    }
    return schedule;
}

void compress(State& state, const char* block) {
    const std::array<uint32_t, 64> schedule = message_schedule(block);
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t t = 0; t < 64; ++t) {
        const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t choice = (e & f) ^ (~e & g);
        const uint32_t first = h + sum1 + choice + kRoundConstants[t] + schedule[t];
        const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + sum0 + majority;
    }
    const State worked = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state.size(); ++i) state[i] += worked[i];
}

}  // namespace

Sha256Digest sha256(std::string_view data) {
    const uint64_t length_in_bits = uint64_t(data.size()) * 8;
    State state = kInitialState;
    for (; data.size() >= kBlockSize; data.remove_prefix(kBlockSize)) compress(state, data.data());

    // What is left, a one bit, zeroes and the length fill one block, or two if the length does not fit.
    std::array<char, 2 * kBlockSize> tail{};
    data.copy(tail.data(), data.size());
    tail[data.size()] = '\x80';
    const size_t tail_size = data.size() + 1 + kLengthSize <= kBlockSize ? kBlockSize : 2 * kBlockSize;
    for (size_t i = 0; i < kLengthSize; ++i) tail[tail_size - 1 - i] = static_cast<char>(length_in_bits >> (8 * i));
    for (size_t at = 0; at < tail_size; at += kBlockSize) compress(state, tail.data() + at);

    Sha256Digest digest;
    for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

std::string to_hex(const Sha256Digest& digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * digest.size());
    for (const uint8_t byte : digest) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

}  // namespace pinfold
