// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// backups are taken by processes that send what members have compressed. A verification runs a server over what it restored.
var backups = engine.Backups{
	Taking:    engine.Memory{Request: resource.MustParse("128Mi"), Most: resource.MustParse("512Mi")},
	Verifying: engine.Memory{Request: resource.MustParse("512Mi"), Most: resource.MustParse("1Gi")},
}

// archiveTimeout is how long writes that do not fill a segment wait for the archive at most.
const archiveTimeout = "60s"

// archiving adds what takes effect at once. The command finds out each time what to archive and where, and discards segments while
// backups are off.
func (s Server) archiving(ps map[string]string) {
	if s.Archives {
		// The shell drops what follows #. pgBackRest takes backups only where it reads its own name.
		ps["archive_command"] = members.Program + " archive %p # pgbackrest"
	}
	if s.Archiving {
		ps["archive_timeout"] = archiveTimeout
	}
}

// bootstrap of the data: what the first member begins with.
func (s Server) bootstrap() map[string]any {
	b := map[string]any{"dcs": s.dynamic(), "initdb": s.initdb()}
	if s.Restored {
		b["method"] = "restore"
		b["restore"] = map[string]any{
			"command":   members.Program + " restore",
			"no_params": true,
			// The command writes what to replay and until when.
			"keep_existing_recovery_conf": true,
		}
	}
	return b
}
