// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/member/logs"
)

func TestReaders(t *testing.T) {
	k := &Marks{mark: "M"}
	for name, tc := range map[string]struct {
		reason string
		read   logs.Reader
		text   string
		want   string
	}{
		"Background": {
			"A process of the server's own has no session.", k.Member,
			"M2026-11-26 18:00:00.123 UTC [42] 00000 LOG:  checkpoint starting: time\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"INFO","msg":"checkpoint starting: time","source":"postgres","severity":"LOG","pid":42}`,
		},
		"Session": {
			"All parts of a message are one entry.", k.Member,
			"M2026-11-26 18:00:00.123 UTC [42] 23505 10.0.0.7 my appMapiMshopMERROR:  duplicate key\n" +
				"M2026-11-26 18:00:00.123 UTC [42] 23505 10.0.0.7 my appMapiMshopMDETAIL:  Key (id)=(1)\n" +
				"M2026-11-26 18:00:00.123 UTC [42] 23505 10.0.0.7 my appMapiMshopMSTATEMENT:  insert into t\n\tvalues (1)\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"duplicate key","source":"postgres","severity":"ERROR","code":"23505","pid":42,` +
				`"database":"shop","user":"api","host":"10.0.0.7","application":"my app","parts":{"detail":"Key (id)=(1)","statement":"insert into t\nvalues (1)"}}`,
		},
		"ForgedText": {
			"A client cannot forge a message by the name of its application, nor by text with several lines.", k.Member,
			"M2026-11-26 18:00:00.123 UTC [42] 42601 [local] x FATAL:  goneMapiMshopMERROR:  syntax error\n" +
				"\tM2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"syntax error\nM2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged",` +
				`"source":"postgres","severity":"ERROR","code":"42601","pid":42,"database":"shop","user":"api","application":"x FATAL:  gone"}`,
		},
		"ForgedUser": {
			"The server writes the name of a user as a client gives it: it ends at a mark.", k.Member,
			"M2026-11-26 18:00:00.123 UTC [42] 28000 10.0.0.7 [unknown]MPANIC:  x\n2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged\n" +
				"{\"msg\":\"forged\"}\n\n2026-11-26 18:00:00,123 ERROR: forged\nMshopMFATAL:  no role \"PANIC:  x\n\t2026-11-26 …\"\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"no role \"PANIC:  x\n2026-11-26 …\"","source":"postgres","severity":"FATAL","code":"28000","pid":42,` +
				`"database":"shop","user":"PANIC:  x\n2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged\n{\"msg\":\"forged\"}\n\n2026-11-26 18:00:00,123 ERROR: forged\n",` +
				`"host":"10.0.0.7","application":"[unknown]"}`,
		},
		"ForgedDatabase": {
			"So does the name of a database.", k.Member,
			"M2026-11-26 18:00:00.123 UTC [42] 28000 10.0.0.7 [unknown]MapiMshop\n{\"msg\":\"forged\"}MFATAL:  x\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"x","source":"postgres","severity":"FATAL","code":"28000","pid":42,` +
				`"database":"shop\n{\"msg\":\"forged\"}","user":"api","host":"10.0.0.7","application":"[unknown]"}`,
		},
		"Patroni": {
			"A trace belongs to its message.", k.Member,
			"M2026-11-26 18:00:00,123 ERROR: failed\nTraceback (most recent call last):\n  File x\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"failed\nTraceback (most recent call last):\n  File x","source":"patroni"}`,
		},
		"Pooler": {
			"PgBouncer writes no colon.", Pooler,
			"2026-11-26 18:00:00.123 UTC [7] WARNING C-0x1: shop/api@10.0.0.7:1 pooler error\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"WARN","msg":"C-0x1: shop/api@10.0.0.7:1 pooler error","source":"pgbouncer","severity":"WARNING","pid":7}`,
		},
		"ForgedForPooler": {
			"PgBouncer begins further lines with a tab, also in the names that a client gives.", Pooler,
			"2026-11-26 18:00:00.123 UTC [7] WARNING C-0x1: shop/api\n\t2026-11-26 18:00:00.123 UTC [1] FATAL forged\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"WARN","msg":"C-0x1: shop/api\n2026-11-26 18:00:00.123 UTC [1] FATAL forged","source":"pgbouncer","severity":"WARNING","pid":7}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			_, _ = (&logs.Writer{To: &out, Read: tc.read}).Write([]byte(tc.text))
			if diff := cmp.Diff(tc.want+"\n", out.String()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRaw: what has no mark is of no known program, whatever it looks like.
func TestRaw(t *testing.T) {
	for _, line := range []string{
		"waiting for server to start....", "\tx", "2026-11-26 18:00:00.123 UTC [42] 00000 LOG:  x", "2026-11-26 18:00:00,123 ERROR: x",
	} {
		if e := NewMarks().Member(line, nil); e == nil || e.Source != "output" || e.Message != line || e.Level != "INFO" {
			t.Errorf("%q: %+v", line, e)
		}
	}
}
