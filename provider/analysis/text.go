// SPDX-License-Identifier: Apache-2.0

package analysis

import "github.com/capstan-dev/capstan/provider/internal/words"

// maxMessage bounds a message in bytes.
const maxMessage = 1024

// bounded message.
func bounded(message string) string { return words.Bounded(message, maxMessage) }
