// SPDX-License-Identifier: Apache-2.0

// Package onewriter decides, by the writes that members of a Database acknowledged, whether two of them took writes at one time.
//
// What a member says of itself proves nothing: a leader that was frozen or cut off takes itself for the leader for some seconds, and can
// acknowledge nothing. So only acknowledged writes count, each with the time from its request to its answer.
package onewriter

import (
	"fmt"
	"slices"
	"time"
)

// A Write that a member acknowledged.
type Write struct {
	Member string `json:"member"`
	// From the request to the answer.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Term is the longest pause between two writes of a member in which no other member can be the leader in between: a failover and a
// failback, or two switchovers, take longer.
const Term = 2 * time.Second

// Divided returns what proves that two members took writes at one time, in words: the whole of one member's write is between two of
// another one that are closer than a Term. Of writes that overlap either may have been first, so they prove nothing.
func Divided(writes []Write) []string {
	of := map[string][]Write{}
	for _, w := range writes {
		of[w.Member] = append(of[w.Member], w)
	}
	all := slices.Clone(writes)
	slices.SortFunc(all, func(a, b Write) int { return a.From.Compare(b.From) })
	var proofs []string
	for member, own := range of {
		slices.SortFunc(own, func(a, b Write) int { return a.From.Compare(b.From) })
		answered := own[0].To
		for _, next := range own[1:] {
			if pause := next.From.Sub(answered); pause > 0 && pause < Term {
				if w, found := between(all, member, answered, next.From); found {
					proofs = append(proofs, fmt.Sprintf("%s took a write at %s, %s from %s to %s, and %s again at %s", member, clock(answered),
						w.Member, clock(w.From), clock(w.To), member, clock(next.From)))
				}
			}
			if next.To.After(answered) {
				answered = next.To
			}
		}
	}
	slices.Sort(proofs)
	return proofs
}

// between two times, the whole of a write of another member. The writes are in the order in which they were requested.
func between(all []Write, member string, from, to time.Time) (Write, bool) {
	first, _ := slices.BinarySearchFunc(all, from, func(w Write, t time.Time) int { return w.From.Compare(t) })
	for _, w := range all[first:] {
		if w.From.After(to) {
			break
		}
		if w.Member != member && w.From.After(from) && w.To.Before(to) {
			return w, true
		}
	}
	return Write{}, false
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
