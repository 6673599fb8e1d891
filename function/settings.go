// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/settings"
	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// settingsOf the platform, as a request has them.
func settingsOf(req *edge.Request) (v1alpha1.Settings, error) {
	var input compose.Object
	if req.Input != nil {
		input = req.Input
	}
	environments := make([]compose.Object, 0, len(req.Required[requiredSettings]))
	for _, item := range req.Required[requiredSettings] {
		environments = append(environments, item)
	}
	return settings.Of(released(), input, environments...)
}

// settingsFrom names the EnvironmentConfig that there is, or is empty.
func settingsFrom(req *edge.Request) string {
	if len(req.Required[requiredSettings]) == 0 {
		return ""
	}
	return settings.Name
}

// errMissed reports an EnvironmentConfig that what runs was composed with, and that is gone.
func errMissed(name string) error {
	return fmt.Errorf("EnvironmentConfig %q does not exist, and this object was composed with it. Nothing changes until it exists: apply "+
		"it again, or create it with no data for the defaults", name)
}
