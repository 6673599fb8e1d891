// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestFenceMember gives a request to the members, restarts nothing, and reports only what the member itself does.
func TestFenceMember(t *testing.T) {
	w := running(t, basic)
	before := w.revisions()
	w.edit(with(basic, `fence: {id: "1", member: orders-db-b}`))
	p := w.pass()
	if told := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(told, `"fence":{"id":"1","member":"orders-db-b"}`) {
		t.Errorf("members have no request: %s", told)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a request restarts members: -before, +after:\n%s", diff)
	}
	if got := told(t, p).Fence; got.Outcome != members.FenceWaiting || got.ID != "1" || got.Member != "orders-db-b" {
		t.Errorf("before the member reports it is %v", got)
	}

	// The member stops.
	w.broken["orders-db-b"] = members.ReasonStopped
	w.fences = map[string]*observev1alpha1.MemberFenceReport{"orders-db-b": {ID: "1", Outcome: members.FenceStopped}}
	w.pass()
	p = w.pass()
	if diff := cmp.Diff(&v1alpha1.FenceStatus{ID: "1", Member: "orders-db-b", Outcome: members.FenceStopped}, told(t, p).Fence); diff != "" {
		t.Error(diff)
	}
	if _, reason, message := condition(p, "HighlyAvailable"); !strings.Contains(message, "orders-db-b: it says why") {
		t.Errorf("%s: %s", reason, message)
	}

	// An outcome of another request is none, and after a restore members have other names.
	w.edit(with(basic, `fence: {id: "2", member: orders-db-b}`))
	if got := told(t, w.pass()).Fence; got.Outcome != members.FenceWaiting {
		t.Errorf("the outcome of another id counts: %v", got)
	}
	w.edit(with(basic, `fence: {id: "1", member: orders-db-x}`))
	p = w.pass()
	if got := told(t, p).Fence; !strings.Contains(got.Message, "is not one of the members [orders-db-a orders-db-b orders-db-c]") {
		t.Errorf("a member that does not exist: %v", got)
	}
	if s, reason, _ := condition(p, "Accepted"); s != "True" {
		t.Errorf("the spec must stay accepted, got %s", reason)
	}
}
