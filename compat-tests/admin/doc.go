// Package admin calls each method of the admin client kadm once and judges its
// answer. Methods of features that come later are listed with the reason.
package admin
