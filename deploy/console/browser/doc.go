// Package browser tests the console in a browser: headless Chromium shows the pages of a
// running site. The tests have the build tag browser, so that "make test" needs no
// Chromium; "make console-test" runs them, and "make console-shots" takes pictures.
package browser
