// SPDX-License-Identifier: Apache-2.0

package report

import "regexp"

// ends of a connection, and the near one is another at each try.
var ends = regexp.MustCompile(`\S+->(\S+)`)

// Lasting text of an error, the same as long as its cause is: a report changes only when a fact does.
func Lasting(err error) string { return ends.ReplaceAllString(err.Error(), "$1") }
