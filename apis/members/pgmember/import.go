// SPDX-License-Identifier: Apache-2.0

package pgmember

// What an import may leave out.
const (
	SkipLargeObjects   = "LargeObjects"
	SkipUnloggedTables = "UnloggedTables"
)
