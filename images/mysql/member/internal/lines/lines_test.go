// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/member/logs"
)

func TestMember(t *testing.T) {
	var out strings.Builder
	_, _ = (&logs.Writer{To: &out, Read: Member}).Write([]byte(
		"2026-11-26T18:00:00.123456Z 0 [System] [MY-010931] [Server] ready for \"connections\".\n" +
			"2026-11-26T18:00:01.000000Z 12 [Warning] [MY-013360] [Repl] x\nno line of the server\n"))
	want := []string{
		`{"time":"2026-11-26T18:00:00.123456Z","level":"INFO","msg":"ready for \"connections\".","source":"mysql","severity":"System","code":"MY-010931","parts":{"subsystem":"Server"}}`,
		`{"time":"2026-11-26T18:00:01Z","level":"WARN","msg":"x","source":"mysql","severity":"Warning","code":"MY-013360","pid":12,"parts":{"subsystem":"Repl"}}`,
	}
	lines := strings.Split(out.String(), "\n")
	if diff := cmp.Diff(want, lines[:2]); diff != "" || !strings.Contains(lines[2], `"msg":"no line of the server","source":"output"`) {
		t.Errorf("-want, +got:\n%s%s", diff, lines[2])
	}
}
