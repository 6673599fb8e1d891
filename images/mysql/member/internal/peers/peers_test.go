// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// TestAnswer: members of different versions understand each other.
func TestAnswer(t *testing.T) {
	const group = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	has, err := gtid.Parse(group + ":1-7")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   decision.Member
	}{
		"Full": {
			"All that it has to say.",
			`{"scope":"orders-1","state":"Grouped","proven":true,"server":"s","has":"` + group + `:1-7","group":["a"],"hears":["a"],"groupName":"g","follows":"s","addresses":true,"full":true}`,
			decision.Member{State: decision.Grouped, Proven: true, Server: "s", Has: has, Group: []string{"a"}, Hears: []string{"a"}, GroupName: "g", Follows: "s", Addresses: true, Full: true},
		},
		"Earlier": {"An earlier version says less.", `{"scope":"orders-1","state":"Starting"}`, decision.Member{State: decision.Starting}},
	} {
		var got answer
		if err := json.Unmarshal([]byte(tc.text), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answer{tc.want, "orders-1"}, got, cmp.Comparer(func(a, b gtid.Set) bool { return a.String() == b.String() })); diff != "" {
			t.Errorf("%s: %s -want, +got:\n%s", name, tc.reason, diff)
		}
	}
	raw, err := json.Marshal(answer{decision.Member{State: decision.Offline, Has: has}, "orders-1"})
	if want := `{"state":"Offline","has":"` + group + `:1-7","scope":"orders-1"}`; err != nil || string(raw) != want {
		t.Errorf("An earlier version reads the same keys: %s, %v, want %s", raw, err, want)
	}
}
