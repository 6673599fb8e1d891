// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// imports of a running server, by a replication channel. A statement in the log of the source has the name of its database in it, so none gets another.
// A login shows its password to the server, so that is verified.
var imports = engine.Imports{
	First: firstSeries,
	TLS: map[v1alpha1.ImportTLS]string{
		v1alpha1.ImportVerifyFull: mysqlmember.ImportVerifyFull, v1alpha1.ImportVerifyCA: mysqlmember.ImportVerifyCA,
	},
	Skips:   []v1alpha1.ImportSkip{v1alpha1.ImportSkipStoredObjects},
	Failing: "the source keeps its binary logs for a limited time only",
}
