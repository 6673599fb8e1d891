// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestFirstRequest(t *testing.T) {
	if got := FirstRequest(""); got != (members.ReinitializeReport{}) {
		t.Errorf("A volume without a request has nothing to report, got %v", got)
	}
	if got := FirstRequest("1"); got.Outcome != members.ReinitializeSkipped {
		t.Errorf("A member that was made after the request has new data, got %v", got)
	}
}
