// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/report"
)

// TestFilling: a restore replaces the data that it was requested for, and no other.
func TestFilling(t *testing.T) {
	const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	restores := map[string]string{"capstan.dev/view": `[{"name":"orders-a","server":""}]`}
	cases := map[string]struct {
		reason    string
		requested string
		record    map[string]string
		config    mysqlmember.Config
		want      bool
	}{
		"Claimed": {"It is the one that restores.", server, restores, mysqlmember.Config{From: &mysqlmember.Source{}}, true},
		"None":    {"Nothing was requested.", "", restores, mysqlmember.Config{From: &mysqlmember.Source{}}, false},
		"Late": {
			"The request was made before a restore that succeeded since: the data is another one.", "4f22fa47-71ca-11e1-9e33-c80aa9429562", restores,
			mysqlmember.Config{From: &mysqlmember.Source{}},
			false,
		},
		"Began": {
			"It has begun its group since.", server,
			map[string]string{"capstan.dev/view": `[{"name":"orders-a","server":"1"}]`},
			mysqlmember.Config{From: &mysqlmember.Source{}},
			false,
		},
		"Another": {
			"Another member begins, as a person decided.", server,
			map[string]string{"capstan.dev/view": `[{"name":"orders-b","server":""}]`},
			mysqlmember.Config{From: &mysqlmember.Source{}},
			false,
		},
		"Initialized": {
			"There is data.", server,
			map[string]string{"capstan.dev/view": `[{"name":"orders-a","server":""}]`, members.AnnotationInitialize: "1"},
			mysqlmember.Config{From: &mysqlmember.Source{}},
			false,
		},
		"Begun":     {"There was data.", server, restores, mysqlmember.Config{From: &mysqlmember.Source{}, Begun: true}, false},
		"NoBackup":  {"The Database names no backup any more.", server, restores, mysqlmember.Config{}, false},
		"NoRequest": {"A server that said no id has no request.", "", restores, mysqlmember.Config{From: &mysqlmember.Source{}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.WriteFile(filepath.Join(data, "auto.cnf"), []byte("[auto]\nserver-uuid="+server+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			store, _ := recordAt(t, tc.record)
			filled := false
			log := slog.New(slog.DiscardHandler)
			f := &Filling{
				name: "orders-a", data: data, store: store, reporter: report.New(nil, log), log: log, wake: loop.NewWakeup(),
				config: func() (mysqlmember.Config, error) { return tc.config, nil },
				fill:   func(context.Context, mysqlmember.Source) error { filled = true; return nil },
			}
			if name != "None" {
				f.Request(tc.requested)
			}
			f.Run(t.Context())
			if filled != tc.want || f.Due() && !tc.want {
				t.Errorf("%s It restores: %t, and the request stays: %t", tc.reason, filled, f.Due())
			}
		})
	}
}
