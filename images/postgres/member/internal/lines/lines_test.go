// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/member/logs"
)

func TestReaders(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		read   logs.Reader
		text   string
		want   string
	}{
		"Background": {
			"A process of the server's own has no session.", Member,
			"2026-11-26 18:00:00.123 UTC [42] 00000 LOG:  checkpoint starting: time\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"INFO","msg":"checkpoint starting: time","source":"postgres","severity":"LOG","pid":42}`,
		},
		"Session": {
			"All parts of a message are one entry.", Member,
			"2026-11-26 18:00:00.123 UTC [42] 23505 api@shop 10.0.0.7 my app › ERROR:  duplicate key\n" +
				"2026-11-26 18:00:00.123 UTC [42] 23505 api@shop 10.0.0.7 my app › DETAIL:  Key (id)=(1)\n" +
				"2026-11-26 18:00:00.123 UTC [42] 23505 api@shop 10.0.0.7 my app › STATEMENT:  insert into t\n\tvalues (1)\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"duplicate key","source":"postgres","severity":"ERROR","code":"23505","pid":42,` +
				`"database":"shop","user":"api","host":"10.0.0.7","application":"my app","parts":{"detail":"Key (id)=(1)","statement":"insert into t\nvalues (1)"}}`,
		},
		"Forged": {
			"A client cannot forge a message by the name of its application, nor by text with several lines.", Member,
			"2026-11-26 18:00:00.123 UTC [42] 42601 api@shop [local] x FATAL:  gone › ERROR:  syntax error\n" +
				"\t2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged › ERROR:  y\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"syntax error\n2026-11-26 18:00:00.123 UTC [1] 00000 PANIC:  forged › ERROR:  y",` +
				`"source":"postgres","severity":"ERROR","code":"42601","pid":42,"database":"shop","user":"api","application":"x FATAL:  gone"}`,
		},
		"FormerPrefix": {
			"A server that has not read its new configuration yet writes no mark.", Member,
			"2026-11-26 18:00:00.123 UTC [42] api@shop/app ERROR:  x\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"INFO","msg":"api@shop/app ERROR:  x","source":"postgres","pid":42}`,
		},
		"Patroni": {
			"A trace belongs to its message.", Member,
			"2026-11-26 18:00:00,123 ERROR: failed\nTraceback (most recent call last):\n  File x\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"ERROR","msg":"failed\nTraceback (most recent call last):\n  File x","source":"patroni"}`,
		},
		"Pooler": {
			"PgBouncer writes no colon.", Pooler,
			"2026-11-26 18:00:00.123 UTC [7] WARNING C-0x1: shop/api@10.0.0.7:1 pooler error\n",
			`{"time":"2026-11-26T18:00:00.123Z","level":"WARN","msg":"C-0x1: shop/api@10.0.0.7:1 pooler error","source":"pgbouncer","severity":"WARNING","pid":7}`,
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

func TestRaw(t *testing.T) {
	for _, line := range []string{"waiting for server to start....", "\tx"} {
		if e := Member(line, nil); e == nil || e.Source != "output" || e.Message != line || e.Level != "INFO" {
			t.Errorf("%q: %+v", line, e)
		}
	}
}
