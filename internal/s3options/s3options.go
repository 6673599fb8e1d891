// SPDX-License-Identifier: Apache-2.0

// Package s3options has what every S3 client of Capstan needs, because its servers are of any make.
package s3options

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// AnyMake of server is what a client works with. It is an argument of s3.New, and changes nothing that a program chooses: addresses,
// credentials, connections and retries.
func AnyMake(o *s3.Options) {
	// Servers of other makes do not know the checksums that AWS has added.
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired

	// Bucket names are just names here, in any form.
	o.DisableS3ExpressSessionAuth = aws.Bool(true)
	o.DisableMultiRegionAccessPoints = true

	o.APIOptions = append(slices.Clip(o.APIOptions), trustOwnClock)
}

// trustOwnClock has requests signed with the time of this machine. Otherwise the client would take over the time of the last answer, and a
// proxy or server that sends a wrong date would have all further requests refused.
func trustOwnClock(stack *middleware.Stack) error {
	if m, ok := stack.Finalize.Get((&retry.Attempt{}).ID()); ok {
		if attempts, is := m.(*retry.Attempt); is {
			attempts.ClientSkew = nil
		}
	}
	return nil
}
