// SPDX-License-Identifier: Apache-2.0

package password

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, password string
		ok               bool
	}{
		"Good":    {reason: "Whatever is printed.", password: `aB3$ '"\~`, ok: true},
		"Empty":   {reason: "No password opens nothing."},
		"Newline": {reason: "A file that ends with a newline.", password: "secret\n"},
		"Umlaut":  {reason: "Clients normalise it differently.", password: "geheimnisträger"},
		"Long":    {reason: "Long ones are cut somewhere.", password: strings.Repeat("x", maxLength+1)},
	}
	for name, tc := range cases {
		if err := Check([]byte(tc.password)); (err == nil) != tc.ok {
			t.Errorf("%s: %s Check(...): got %v", name, tc.reason, err)
		}
	}
}
