// SPDX-License-Identifier: Apache-2.0

// Package fence decides which of two generations of a Database takes writes while clients are switched from one to the other.
//
// Everything that the decision depends on is one object of the API server, the ConfigMap <scope>-config of the former generation: its
// configuration, with the fence and the pause that keeps standbys from being promoted, and the record of the decision. Each step is a
// function of the object as it was read, and is written only if the object is still the same. No step needs Crossplane or Capstan:
//
//	Offered → Held → Committed    the later generation serves from then on, the former never again
//	        ↘      ↘ Withdrawn    the former generation serves, the later never
//
// The later generation takes writes only after it has written Committed, and a member of the former one continues only after Withdrawn is
// written. Neither changes, so two generations never take writes.
package fence

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

var (
	// ErrWithdrawn says that the former generation continues, for good.
	ErrWithdrawn = errors.New("the former generation continues")
	// ErrOpen says that the former generation is not fenced now.
	ErrOpen = errors.New("the former generation is not fenced")
	// ErrTaken says that the record is of another upgrade or restore, or cannot be taken for this one any more.
	ErrTaken = errors.New("another upgrade or restore uses the fence")
)

// An Object is what a version of the ConfigMap says about the fence.
type Object struct {
	// ID of the fence that is desired, To the generation that it is for, and Limit how long it is held. A function that does not know
	// of the record asks without To.
	ID, To string
	Limit  time.Duration
	// Withdraw asks that the fence ends, and Paused that no member is promoted.
	Withdraw, Paused bool
	// Followed reports that the later generation is a copy that follows the former, and has to have all that it wrote. Otherwise it has other
	// data.
	Followed bool
	// Record of the decision; its zero value when there is none.
	Record members.FenceRecord
}

// asked reports whether a fence is desired. Without a pause there is none: another member would be promoted.
func (o Object) asked() bool { return o.ID != "" && o.Paused }

// recorded reports whether the record is of the fence that is desired.
func (o Object) recorded() bool {
	return o.Record.ID == o.ID && (o.To == "" || o.Record.To == o.To)
}

// over reports whether the fence that is desired was withdrawn, and what desires it has not observed that.
func (o Object) over() bool { return o.recorded() && o.Record.State == members.FenceWithdrawn }

// InForce returns the fence that members of the former generation have to hold; "" when there is none.
func (o Object) InForce() string {
	if !o.asked() || o.over() {
		return ""
	}
	return o.ID
}

// Left returns how much time a fence has that is held, and whether that is limited.
func (o Object) Left(now time.Time) (time.Duration, bool) {
	if !o.asked() || !o.recorded() || o.Record.State != members.FenceHeld || o.Record.Until == nil {
		return 0, false
	}
	return o.Record.Until.Sub(now), true
}

// Lost returns why the later generation can never serve, and whether that is so.
func (o Object) Lost(id, to string) (why string, lost bool) {
	switch r := o.Record; {
	case r.ID != id || r.To != to:
		return ErrTaken.Error(), true
	case r.State == members.FenceWithdrawn:
		return r.Why, true
	case r.State != members.FenceCommitted && o.ID == id && o.Withdraw:
		return givenUp, true
	}
	return "", false
}

// givenUp is why a fence ends that Capstan asks to end.
const givenUp = "Capstan stopped it"

// Settle is what any member of the former generation does about the fence: it holds it for a limited time, and withdraws it when that is
// over or Capstan asks for it. It reports whether there is anything to write.
func (o Object) Settle(now time.Time) (Object, bool) {
	switch {
	case !o.asked(), o.To == "" && !o.recorded():
		return o, false
	case !o.recorded():
		o.Record = members.FenceRecord{ID: o.ID, To: o.To, State: members.FenceOffered}
	}
	switch r := o.Record; {
	case r.State == members.FenceCommitted:
		return o, false
	case r.State == members.FenceWithdrawn:
		return o.open(), true // it was desired by what had not observed that yet
	case o.Withdraw:
		return o.withdraw(givenUp), true
	case r.State == members.FenceHeld && r.Until != nil && !now.Before(*r.Until):
		return o.withdraw(fmt.Sprintf("%s did not take over by %s: see the log of its first member", r.To, r.Until.UTC().Format(time.RFC3339))), true
	case r.State == members.FenceHeld && r.Until != nil, o.To == "", o.Limit <= 0:
		return o, false
	}
	until := now.Add(o.Limit).UTC().Truncate(time.Second)
	o.Record.State, o.Record.Until = members.FenceHeld, &until
	return o, true
}

// Offer is what the later generation does once it is ready. It is refused while there is a fence, and removes one that is over: without the
// record of its end, it would be in force again.
func (o Object) Offer(id, to string) (Object, bool, error) {
	switch r := o.Record; {
	case r.ID == id && r.To == to:
		return o, false, nil
	case o.ID != "" && !o.over():
		return o, false, ErrTaken
	case o.Outlived(to):
		return o, false, ErrTaken // a member that was forgotten
	}
	if o.over() {
		o = o.open()
	}
	o.Record = members.FenceRecord{ID: id, To: to, State: members.FenceOffered}
	return o, true, nil
}

// Commit is what the later generation does before it takes writes.
func (o Object) Commit(id, to string) (Object, bool, error) {
	switch r := o.Record; {
	case r.ID != id || r.To != to:
		return o, false, ErrTaken
	case r.State == members.FenceCommitted:
		return o, false, nil
	case r.State == members.FenceWithdrawn:
		return o, false, fmt.Errorf("%w: %s", ErrWithdrawn, r.Why)
	case !o.asked() || o.ID != id || cmp.Or(o.To, to) != to || o.Withdraw:
		return o, false, ErrOpen
	}
	o.Record.State, o.Record.Until = members.FenceCommitted, nil
	return o, true, nil
}

// GiveUp is what the later generation does when it cannot take over, so that the former one continues at once.
func (o Object) GiveUp(id, to, why string) (Object, bool) {
	r := o.Record
	if r.ID != id || r.To != to || r.State == members.FenceCommitted || r.State == members.FenceWithdrawn {
		return o, false
	}
	if !o.asked() || o.ID != id || cmp.Or(o.To, to) != to { // there is nothing to end yet
		o.Record.State, o.Record.Until, o.Record.Why = members.FenceWithdrawn, nil, why
		return o, true
	}
	return o.withdraw(why), true
}

// withdraw the fence.
func (o Object) withdraw(why string) Object {
	o.Record.State, o.Record.Until, o.Record.Why = members.FenceWithdrawn, nil, why
	return o.open()
}

// open is the object without a fence, and without its pause.
func (o Object) open() Object {
	o.ID, o.To, o.Limit, o.Withdraw, o.Paused = "", "", 0, false, false
	return o
}

// Outlived reports whether the record is of a generation after the one with a label, whose pods may be there for a while.
func (o Object) Outlived(to string) bool { return number(o.Record.To) > number(to) }

// number of a generation by the label of its pods. No number is given twice.
func number(label string) int {
	_, last, _ := strings.Cut(label, ".g")
	n, _ := strconv.Atoi(last)
	return n
}
