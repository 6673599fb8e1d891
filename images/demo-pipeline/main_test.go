// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	tests := map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // It is a case of the table.
		o      Options
		code   int
		says   string
	}{
		"Works":  {"It says which run it was.", t.Context(), Options{Run: "7", ScheduledAt: "2026-11-20T03:00:00Z", Attempt: 2, Memory: 1}, 0, `{"run":"7","scheduledAt":"2026-11-20T03:00:00Z","attempt":2,"mib":1}`},
		"Fails":  {"It fails in the attempts that it should.", t.Context(), Options{Exit: 3, Until: 2, Attempt: 1, Say: "no such table"}, 3, "no such table"},
		"Passes": {"It fails in no other.", t.Context(), Options{Exit: 3, Until: 2, Attempt: 2}, 0, `"attempt":2`},
		"Ends":   {"It ends when it has to go.", gone, Options{Work: time.Hour}, terminated, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := run(tc.ctx, tc.o, &out); code != tc.code || !strings.Contains(out.String(), tc.says) {
				t.Errorf("%s: code %d, output %q", tc.reason, code, out.String())
			}
		})
	}
}
