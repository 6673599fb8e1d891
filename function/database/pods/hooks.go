// SPDX-License-Identifier: Apache-2.0

package pods

import "strings"

// Verbatim text in an environment variable, in which Kubernetes would put the values of others in for $(…).
func Verbatim(text string) string { return strings.ReplaceAll(text, "$", "$$") }
