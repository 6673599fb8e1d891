// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// TestWhenWell: a login may be made right after a look, and its consumer cannot read changes before the next one.
func TestWhenWell(t *testing.T) {
	for _, c := range []struct {
		reason string
		config pgmember.Config
		want   time.Duration
	}{
		{"Nothing comes that needs a superuser.", pgmember.Config{Databases: []string{"app"}}, manageEvery},
		{"The provider makes logins after the database, and at each rotation.", pgmember.Config{Databases: []string{"app"}, Replicators: []string{"cdc", "cdc-2"}}, manageLogins},
	} {
		if got := whenWell(c.config); got != c.want {
			t.Errorf("%s got %s, want %s", c.reason, got, c.want)
		}
	}
}
