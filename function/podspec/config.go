// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// ConfigHash of names and contents. JSON sorts the names and marks where each ends.
func ConfigHash(c *v1alpha1.Config) string {
	raw, _ := json.Marshal(c.Files) //nolint:errchkjson // A map of strings always marshals.
	return compose.Hash(raw)
}
