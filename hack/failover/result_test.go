// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	got := table("capstan", []result{
		{Fault: "pod deleted", Gaps: []float64{1.5, 2}, Healed: 20},
		{Fault: "node lost", Gaps: nil, Healed: 100},
		{Fault: "pod deleted", Gaps: []float64{4}, Healed: 30},
		{Fault: "pod deleted", Gaps: []float64{0.5, 0}, Healed: 40},
		{Fault: "node cut off", Gaps: []float64{9}},
	}, rows{Acknowledged: 1000, Failed: 20, Lost: 1})
	want := `
| capstan | writes stopped, s: median | worst | each | all members follow, s: median |
|---|---|---|---|---|
| pod deleted | 2.0 | 4.0 | 2.0, 4.0, 0.5 | 30 |
| node lost | 0.0 | 0.0 | 0.0 | 100 |
| node cut off | 9.0 | 9.0 | 9.0 | never |

1000 rows acknowledged, 20 writes failed, 1 rows lost
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestParse reads what the program in images/demo-database prints, and leaves out what is no JSON.
func TestParse(t *testing.T) {
	got := parse(`{"first":"2026-11-27T12:00:00Z"}
panic: no JSON
{"gap":{"from":"2026-11-27T12:00:01Z","to":"2026-11-27T12:00:03Z","seconds":2}}
{"account":{"acknowledged":10,"failed":2,"lost":[7]}}
`)
	if len(got) != 3 || got[1].Gap.Seconds != 2 || len(got[2].Account.Lost) != 1 {
		t.Errorf("want a first row, a gap and an account, got %+v", got)
	}
}
