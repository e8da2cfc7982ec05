// Result<T>: a value or an Error, and TRY to pass the Error up.
// Not exceptions: a failing child process must report, not unwind its parent's frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace pinfold {

// What failed, outermost clause first, and what the user can do about it (hint, may be empty).
// An error is returned or printed, never both.
struct Error {
    int code = 0;  // errno where a system call failed, else 0
    std::string message;
    std::string hint;

    // Puts "clause: " in front: each layer says what it was doing.
    Error within(std::string_view clause) &&;
    Error with_hint(std::string text) &&;
};

// "what: reason" for a failed system call. Call it first thing after the failure: it reads errno.
Error errno_error(std::string_view what);
Error errno_error(int code, std::string_view what);
Error plain_error(std::string message);

// The reason in words that no engine mistakes for a missing executable (see result.cpp).
std::string errno_words(int code);

template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;

    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& operator*() & noexcept { return *std::get_if<0>(&state_); }
    const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
    T* operator->() noexcept { return std::get_if<0>(&state_); }
    const T* operator->() const noexcept { return std::get_if<0>(&state_); }
    T value() && { return std::move(*std::get_if<0>(&state_)); }

    Error& error() & noexcept { return *std::get_if<1>(&state_); }
    const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
    Error error() && { return std::move(*std::get_if<1>(&state_)); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;

    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void value() && {}

    Error& error() & noexcept { return *error_; }
    const Error& error() const& noexcept { return *error_; }
    Error error() && { return std::move(*error_); }

private:
    std::optional<Error> error_;
};

}  // namespace pinfold

// The value of a Result, or return its error from the enclosing function.
#define TRY(expression)                                        \
    __extension__({                                            \
        auto try_result = (expression);                        \
        if (!try_result) return std::move(try_result).error(); \
        std::move(try_result).value();                         \
    })

// The same, with a clause that says what was being done.
#define TRY_IN(clause, expression)                                            \
    __extension__({                                                           \
        auto try_result = (expression);                                       \
        if (!try_result) return std::move(try_result).error().within(clause); \
        std::move(try_result).value();                                        \
    })
