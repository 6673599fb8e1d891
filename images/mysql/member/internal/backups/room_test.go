// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// TestMakesRoom: on a volume with next to no room no log stays that is of use to other members only. They can copy each other instead.
func TestMakesRoom(t *testing.T) {
	t.Run("Archived", func(t *testing.T) {
		each(t, func(m *member, b *bucket) {
			m.commit(2)
			m.runs(5 * time.Minute)
			m.fullness = volume.DiskFull
			m.runs(time.Minute)
			if m.names() != "3" || m.backup().Dropped != "" {
				m.t.Errorf("the files %s are left, of which the archive has all but the last one: %+v", m.names(), m.backup())
			}
		})
	})
	t.Run("Standby", func(t *testing.T) {
		each(t, func(m *member, b *bucket) {
			m.leads = false
			m.commit(2)
			m.begin()
			m.runs(25 * time.Minute)
			m.fullness = volume.DiskFull
			m.runs(5 * time.Minute)
			if m.names() != "2 3" {
				m.t.Errorf("the files %s are left, of which the archive has the first one", m.names())
			}
		})
	})
	t.Run("NoBackups", func(t *testing.T) {
		each(t, func(m *member, b *bucket) {
			m.config.Backup = &mysqlmember.Backup{}
			m.commit(2)
			m.begin()
			m.runs(5 * time.Minute)
			if m.names() != "1 2 3" {
				m.t.Fatalf("the files %s are left on a volume that has room", m.names())
			}
			m.fullness = volume.DiskFull
			m.runs(5 * time.Minute)
			if m.names() != "3" {
				m.t.Errorf("the files %s are left", m.names())
			}
		})
	})
}
