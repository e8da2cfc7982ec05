// Whether an audit log is as it was written: every line, the order, the end.
#include "audit/verify.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <optional>

#include "audit/head.hpp"
#include "audit/line.hpp"
#include "audit/log.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

struct Line {
    size_t number = 0;
    std::string_view text;
    std::optional<AuditRecord> record;
};

// One after the other: a log may be long, and its text is all of it that is kept.
class Lines {
public:
    explicit Lines(std::string_view text) : rest_(text), left_(!text.empty()) {
        if (rest_.ends_with('\n')) rest_.remove_suffix(1);
    }

    std::optional<Line> next() {
        if (!left_) return std::nullopt;
        const size_t end = rest_.find('\n');
        const std::string_view text = rest_.substr(0, end);
        left_ = end != rest_.npos;
        if (left_) rest_.remove_prefix(end + 1);
        return Line{++number_, text, parse_line(text)};
    }
    size_t count() const { return number_; }

private:
    std::string_view rest_;
    bool left_;
    size_t number_ = 0;
};

class Verifier {
public:
    explicit Verifier(std::string_view text) : lines_(text) {}

    AuditReport run(const Head& head);

private:
    std::string check(const Line& line);
    std::string check_damaged(const Line& next);
    std::string wrong_order(const Line& line) const;
    std::string check_end(const Head& head);
    std::string check_cut_end(const Head& head);

    Lines lines_;
    ChainEnd end_;
    std::optional<Line> damaged_;  // the first of those that are no lines, before the one that is looked at
    std::vector<std::string> remarks_;
};

AuditReport Verifier::run(const Head& head) {
    std::string fault;
    while (const std::optional<Line> line = lines_.next()) {
        if (!line->record && !damaged_) damaged_ = line;
        if (line->record) fault = check(*line);
        if (!fault.empty()) break;
    }
    if (fault.empty()) fault = damaged_ ? check_cut_end(head) : check_end(head);
    return {lines_.count(), std::move(remarks_), std::move(fault)};
}

std::string Verifier::check(const Line& line) {
    if (damaged_) {
        std::string fault = check_damaged(line);
        if (!fault.empty()) return fault;
    } else if (line.record->event == kTornEvent && !is_note_of(*line.record, "")) {
        return concat("text was removed before line ", line.number, ", which tells of a line that was cut short");
    }
    if (line.record->end.seq != end_.seq + 1 || line.record->prev != end_.hash) return wrong_order(line);
    if (line.record->event == kGapEvent) {
        return concat("something was removed or changed before line ", line.number,
                      ": the log did not end as it was left");
    }
    end_ = line.record->end;
    return {};
}

// Text that is no line is in order if a crash has cut it short, which the next line then tells.
std::string Verifier::check_damaged(const Line& next) {
    const char* begin = damaged_->text.data();
    const std::string_view text(begin, size_t(next.text.data() - begin) - 1);
    if (next.record->event != kTornEvent || !is_note_of(*next.record, text)) {
        return concat("line ", damaged_->number, " was changed or added: its hash does not fit");
    }
    remarks_.push_back(concat("line ", damaged_->number, " was cut short by a crash, as line ", next.number, " says"));
    damaged_.reset();
    return {};
}

std::string Verifier::wrong_order(const Line& line) const {
    const uint64_t expected = end_.seq + 1;
    const uint64_t seq = line.record->end.seq;
    if (seq < expected)
        return concat("line ", line.number, " was inserted: its number is ", seq, ", which was there before");
    if (seq == expected)
        return concat("line ", line.number, " was replaced or inserted: it does not continue the one before");
    bool comes_later = false;
    for (Lines rest = lines_; const std::optional<Line> other = rest.next();) {
        comes_later = comes_later || (other->record && other->record->end.seq == expected);
    }
    if (comes_later)
        return concat("line ", line.number, " is out of order: number ", expected, " comes after number ", seq);
    return concat("lines were removed before line ", line.number, ": it is number ", seq, " instead of ", expected);
}

std::string Verifier::check_cut_end(const Head& head) {
    if (head.next.empty() || head.end != end_) {
        return concat("line ", damaged_->number, " was changed or added: its hash does not fit");
    }
    remarks_.push_back(concat("line ", damaged_->number, " was cut short by a crash; the next event will say so"));
    return {};
}

std::string Verifier::check_end(const Head& head) {
    if (head.is_at(end_)) return {};
    const size_t last = lines_.count();
    if (head.end.seq == 0) return "the head file is missing or damaged: lines may have been removed from the end";
    if (head.end.seq > end_.seq) {
        return concat("lines were removed after line ", last, ": the head file knows of ", head.end.seq);
    }
    if (head.end.seq < end_.seq) {
        return concat("line ", last, " was added: the head file knows of ", head.end.seq, " only");
    }
    return concat("line ", last, " was replaced: the head file knows another one");
}

}  // namespace

Result<AuditReport> verify_audit(const std::string& path) {
    const StopsHeldBack held_back;
    const UniqueFd file = TRY(open_regular(AT_FDCWD, path));
    // Those who append wait: the log and its head have to be of the same moment.
    TRY(lock_file(file.get(), LOCK_SH, path));
    const std::string text = TRY(read_all(file.get(), path));
    const Head head = TRY(read_head(path));
    ::flock(file.get(), LOCK_UN);
    return Verifier(text).run(head);
}

}  // namespace pinfold
