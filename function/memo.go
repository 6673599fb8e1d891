// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/memo"
	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// maxSettings that are remembered, in bytes of what they are read from. An installation has one EnvironmentConfig and an input in
// each of a few Compositions.
const maxSettings = 1 << 20

// A remembered reading of settings, and what is wrong with them.
type remembered struct {
	settings v1alpha1.Settings
	err      error
}

// remember the settings of the platform by all that they are read from, so that they are read and checked once and not in every
// call. The result may be changed.
func remember(m *memo.Memo[remembered], req *edge.Request) (v1alpha1.Settings, error) {
	raw, err := sources(req)
	if err != nil {
		return settingsOf(req)
	}
	r, _ := m.Of(raw, func() (r remembered, size int, err error) { // There is no error: what is wrong is remembered, too.
		r.settings, r.err = settingsOf(req)
		return r, len(raw), nil
	})
	return *r.settings.DeepCopy(), r.err
}

// sources of settings as text, in one order.
func sources(req *edge.Request) ([]byte, error) {
	all := make([]any, 1, 1+len(req.Required[requiredSettings]))
	if req.Input != nil {
		all[0] = req.Input.Map()
	}
	for _, item := range req.Required[requiredSettings] {
		all = append(all, item.Field("data"))
	}
	return json.Marshal(all) //nolint:wrapcheck // What cannot be written is read without the memo.
}
