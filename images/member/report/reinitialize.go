// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/capstan-dev/capstan/apis/members"

// FirstRequest is what becomes of a request to copy a member again that a volume has when its member first looks at one: the data is newer.
// Without a request it is zero.
func FirstRequest(id string) members.ReinitializeReport {
	if id == "" {
		return members.ReinitializeReport{}
	}
	return members.ReinitializeReport{
		ID: id, Outcome: members.ReinitializeSkipped, Message: "the member's data is newer than the request: to copy it again, choose another id",
	}
}
