// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"strconv"
	"strings"
)

// Finite reports whether a loss as it was printed is a finite number. A text that is no number at all counts as finite: nothing is known
// about it.
func Finite(loss string) bool {
	f, ok := Number(loss)
	return !ok || !math.IsNaN(f) && !math.IsInf(f, 0)
}

// Number of a loss as it was printed, for instance 2.31, nan or tensor(2.31, device='cuda:0'), and whether it is one. One that is too
// large for a float is infinite, as for the program.
func Number(loss string) (float64, bool) {
	text := strings.TrimSpace(loss)
	if inner, ok := strings.CutPrefix(text, "tensor("); ok {
		text, _, _ = strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	}
	f, err := strconv.ParseFloat(strings.Trim(text, "[]() "), 64)
	return f, err == nil || math.IsInf(f, 0)
}
