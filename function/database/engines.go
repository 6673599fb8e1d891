// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
)

// engines that a Database can run, by spec.engine. This is the only place that names one.
var engines = map[v1alpha1.Engine]engine.Engine{v1alpha1.EnginePostgres: postgres.Engine{}}

// engineOf a spec. What has another one is not accepted, and composes nothing.
func engineOf(name v1alpha1.Engine) engine.Engine {
	if e, ok := engines[name]; ok {
		return e
	}
	return engines[v1alpha1.EnginePostgres]
}

// CheckVersion of an image of the platform's own.
func CheckVersion(version string) error {
	e := engineOf("")
	if remedy := e.CheckVersion(version); remedy != "" {
		return fmt.Errorf("version %q %s", version, remedy)
	}
	return nil
}
