// SPDX-License-Identifier: Apache-2.0

package database

import "encoding/json"

// asMap is the JSON of a value, decoded.
func asMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller says what it was for.
	}

	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err //nolint:wrapcheck // The same.
	}

	return m, nil
}
