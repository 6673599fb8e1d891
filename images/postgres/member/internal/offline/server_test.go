// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"strings"
	"testing"
)

func TestCause(t *testing.T) {
	for name, tc := range map[string]struct{ reason, said, want string }{
		"Fatal":   {"The last that ended it is the cause.", "LOG:  starting\nFATAL:  one\nLOG:  more\nFATAL:  could not\tread\nLOG:  ended\n", "FATAL: could not read"},
		"Panic":   {"A panic is one, too.", "PANIC:  could not locate a valid checkpoint record at 0/2000028\n", "PANIC: could not locate a valid checkpoint record at 0/2000028"},
		"Nothing": {"Without any there is the log.", "LOG:  starting\n", "see the log of the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			said := &tail{}
			for range 3 {
				_, _ = said.Write([]byte(strings.Repeat("x", maxTail) + "\n"))
			}
			_, _ = said.Write([]byte(tc.said))
			if got := said.cause(); got != tc.want || len(said.text) > maxTail {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
