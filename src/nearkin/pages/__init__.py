"""The report: one HTML file about a study, a folder of runs or one run.

    report        report, Report: what `nearkin.report` returns

Everything else is a part of that page: _build says which sections it has, in which order, and what stands in for a
section that fails; _page and assets/ make HTML of them.
"""
