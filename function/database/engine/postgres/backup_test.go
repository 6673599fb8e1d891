// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

func TestBackup(t *testing.T) {
	s := Server{Server: engine.Server{Members: 3, Memory: 1 << 30, Storage: 50 << 30, Synchronous: true}, Major: 17, MaxConnections: 100, Pace: paces[v1alpha1.FailoverFast]}
	for name, tc := range map[string]struct {
		reason              string
		archives, archiving bool
		want                map[string]string
	}{
		"Never": {"Without backups nothing is set that was not before.", false, false, map[string]string{"archive_mode": "", "archive_command": "", "archive_timeout": ""}},
		"Off":   {"While they are off no segment is begun for them.", true, false, map[string]string{"archive_mode": "on", "archive_timeout": ""}},
		"On":    {"What is written comes into the archive within a minute.", true, true, map[string]string{"archive_mode": "on", "archive_timeout": "60s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			s.Archives, s.Archiving = tc.archives, tc.archiving
			for k, want := range tc.want {
				if got := s.parameters()[k]; got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, k, got, want)
				}
			}

			// pgBackRest takes a backup only of a server whose command has its name.
			if command := s.parameters()["archive_command"]; tc.archives && !strings.Contains(command, "pgbackrest") {
				t.Errorf("the command is %q", command)
			}
			file, err := s.Patroni()
			if err != nil {
				t.Fatal(err)
			}
			if closed := strings.Contains(file, "allowlist_include_members: true"); closed != tc.archives {
				t.Errorf("who takes backups may change something at Patroni: %t", !closed)
			}
			if strings.Contains(file, "method: restore") {
				t.Error("a Database without a source begins with a backup")
			}
		})
	}
	s.Restored = true
	file, err := s.Patroni()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"method: restore", "command: /usr/local/bin/capstan-member restore", "keep_existing_recovery_conf: true"} {
		if !strings.Contains(file, line) {
			t.Errorf("no %q in\n%s", line, file)
		}
	}
}
