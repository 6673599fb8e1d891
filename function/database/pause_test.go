// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"testing"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestPausedByHand: what somebody did with patronictl stays until somebody undoes it.
func TestPausedByHand(t *testing.T) {
	w := running(t, basic)
	told := func() map[string]any {
		t.Helper()
		var c map[string]any
		if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	by := func(value any) {
		t.Helper()
		c := told()
		c["pause"] = value
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		o := w.request.Observed[names.DCS].Map()
		compose.Map(o, "metadata", "annotations")[names.AnnotationConfig] = string(raw)
		w.request.Observed[names.DCS] = composetest.Object(o)
	}
	for _, tc := range []struct {
		reason string
		value  any
		want   any
	}{
		{"It is paused, and nobody else resumes it.", true, true},
		{"It is resumed, and nobody else pauses it.", nil, nil},
		{"What Patroni does not know goes.", "maybe", nil},
	} {
		by(tc.value)
		for range 3 {
			w.pass()
		}
		if got := told()["pause"]; got != tc.want {
			t.Errorf("%s: pause is %v, want %v", tc.reason, got, tc.want)
		}
	}
}
