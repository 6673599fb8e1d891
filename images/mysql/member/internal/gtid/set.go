// SPDX-License-Identifier: Apache-2.0

// Package gtid computes with sets of global transaction identifiers, which say what a server has.
package gtid

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Set of transactions. The zero value is empty. Sets are never changed.
type Set struct { //nolint:recvcheck // Only UnmarshalText needs a pointer: JSON is read into a variable.
	// of each source: intervals in order, with a gap between any two.
	of map[source][]interval
}

// A source of transactions: the server or group that numbers them, and a tag if they have one.
type source struct{ server, tag string }

// An interval of numbers, both ends included.
type interval struct{ first, last int64 }

var (
	servers = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	tags    = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
)

// Parse a set as MySQL writes it, such as 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:payroll:1-3.
func Parse(text string) (Set, error) {
	of := map[source][]interval{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.ToLower(strings.TrimSpace(part)); part == "" {
			continue
		}
		words := strings.Split(part, ":")
		if !servers.MatchString(words[0]) || len(words) == 1 {
			return Set{}, fmt.Errorf("cannot understand the transactions %q", part)
		}
		s := source{server: words[0]}
		for i, word := range words[1:] {
			if tags.MatchString(word) && i+2 < len(words) {
				s.tag = word
				continue
			}
			one, err := parseInterval(word)
			if err != nil {
				return Set{}, fmt.Errorf("cannot understand the transactions %q: %w", part, err)
			}
			of[s] = append(of[s], one)
		}
	}
	return normal(of), nil
}

func parseInterval(word string) (interval, error) {
	from, to, found := strings.Cut(word, "-")
	if !found {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first || last == 1<<63-1 {
		return interval{}, fmt.Errorf("%q is no interval", word)
	}
	return interval{first, last}, nil
}

// normal form of intervals in any order.
func normal(of map[source][]interval) Set {
	out := map[source][]interval{}
	for s, all := range of {
		slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
		var merged []interval
		for _, one := range all {
			if n := len(merged); n > 0 && one.first <= merged[n-1].last+1 {
				merged[n-1].last = max(merged[n-1].last, one.last)
				continue
			}
			merged = append(merged, one)
		}
		if len(merged) > 0 {
			out[s] = merged
		}
	}
	return Set{out}
}

// Empty reports whether there is no transaction.
func (s Set) Empty() bool { return len(s.of) == 0 }

// From reports whether any transaction is of a server or group.
func (s Set) From(server string) bool {
	for src := range s.of {
		if src.server == server {
			return true
		}
	}
	return false
}

// FromMore reports whether any transaction is of a server or group that the other set has none of.
func (s Set) FromMore(other Set) bool {
	for src := range s.of {
		if !other.From(src.server) {
			return true
		}
	}
	return false
}

// Union has the transactions of both.
func (s Set) Union(other Set) Set {
	of := map[source][]interval{}
	for _, one := range []Set{s, other} {
		for src, all := range one.of {
			of[src] = append(of[src], all...)
		}
	}
	return normal(of)
}

// Minus has the transactions that the other set lacks.
func (s Set) Minus(other Set) Set {
	of := map[source][]interval{}
	for src, all := range s.of {
		for _, one := range all {
			for _, cut := range other.of[src] {
				if cut.last < one.first || cut.first > one.last {
					continue
				}
				if cut.first > one.first {
					of[src] = append(of[src], interval{one.first, cut.first - 1})
				}
				one.first = cut.last + 1
			}
			if one.first <= one.last {
				of[src] = append(of[src], one)
			}
		}
	}
	return normal(of)
}

// Contains reports whether it has every transaction of the other set.
func (s Set) Contains(other Set) bool { return other.Minus(s).Empty() }

// Count is how many transactions the set has.
func (s Set) Count() (n int64) {
	for _, intervals := range s.of {
		for _, i := range intervals {
			n += i.last - i.first + 1
		}
	}
	return n
}

// String is how MySQL writes it.
func (s Set) String() string {
	var parts []string
	last := ""
	for _, src := range slices.SortedFunc(maps.Keys(s.of), func(a, b source) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.tag, b.tag))
	}) {
		var words []string
		if src.tag != "" {
			words = append(words, src.tag)
		}
		for _, one := range s.of[src] {
			word := strconv.FormatInt(one.first, 10)
			if one.last > one.first {
				word += "-" + strconv.FormatInt(one.last, 10)
			}
			words = append(words, word)
		}
		text := strings.Join(words, ":")
		if src.server == last {
			parts[len(parts)-1] += ":" + text
			continue
		}
		last = src.server
		parts = append(parts, src.server+":"+text)
	}
	return strings.Join(parts, ",")
}

// MarshalText is String, for JSON.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is Parse, for JSON.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}
