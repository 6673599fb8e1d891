// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/engine/mysql"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
)

// engines that a Database can run, by spec.engine. This is the only place that names one.
var engines = map[v1alpha1.Engine]engine.Engine{v1alpha1.EnginePostgres: postgres.New(), v1alpha1.EngineMySQL: mysql.New()}

// defaultEngine of specs and images that name none.
const defaultEngine = v1alpha1.EnginePostgres

// engineOf a spec. What has another one is not accepted, and composes nothing.
func engineOf(name v1alpha1.Engine) engine.Engine {
	if e, ok := engines[name]; ok {
		return e
	}
	return engines[defaultEngine]
}

// CheckVersion of an engine in an image of the platform's own; "" is the default engine.
func CheckVersion(name v1alpha1.Engine, version string) error {
	e, ok := engines[cmp.Or(name, defaultEngine)]
	if !ok {
		return fmt.Errorf("engine %q is unknown: use one of %v", name, compose.SortedKeys(engines))
	}
	if remedy := e.CheckVersion(version); remedy != "" {
		return fmt.Errorf("version %q %s", version, remedy)
	}
	return nil
}
